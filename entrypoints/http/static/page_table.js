// The pages: one row each, and one folder below `pages/` each, which the server takes their paths
// from. `key` is what follows `g` on the keyboard; a page without one is reached from others.

/**
 * @typedef {object} Place Where a page is drawn, and what it may ask for.
 * @property {HTMLElement} root
 * @property {string | null} key the id in the address
 * @property {URLSearchParams} query
 * @property {(path: string) => void} go open another page
 * @property {(path: string) => void} replace change the address and stay; nothing once the page was left
 * @property {(name: string) => void} entitle name what is shown in the title of the window
 *
 * @typedef {object} Page
 * @property {() => Promise<void>} refresh read again what is shown
 * @property {() => void} [tick] draw times again
 * @property {Record<string, () => void>} [keys] what keys do on this page
 * @property {[string, string][]} [help] the keys in words
 * @property {string} [area] the area whose changes it shows; without it, those of all; `none` for a page
 *   that is read again only when the person asks for it
 * @property {number} [pause] milliseconds between two readings because of changes, if reading is dear
 *
 * @typedef {{ name: string, title: string, key: string, load: () => Promise<{ open: (place: Place) => Page }> }} PageRow
 */

/** @type {PageRow[]} */
export const PAGES = [
  { name: "now", title: "Now", key: "n", load: () => import("./pages/now/page.js") },
  { name: "board", title: "Board", key: "b", load: () => import("./pages/board/page.js") },
  { name: "graph", title: "Graph", key: "g", load: () => import("./pages/graph/page.js") },
  { name: "review", title: "Review", key: "v", load: () => import("./pages/review/page.js") },
  { name: "lanes", title: "Lanes", key: "l", load: () => import("./pages/lanes/page.js") },
  { name: "talk", title: "Talk", key: "t", load: () => import("./pages/talk/page.js") },
  { name: "agents", title: "Agents", key: "a", load: () => import("./pages/agents/page.js") },
  { name: "history", title: "History", key: "h", load: () => import("./pages/history/page.js") },
  { name: "record", title: "Record", key: "r", load: () => import("./pages/record/page.js") },
  { name: "health", title: "Health", key: "e", load: () => import("./pages/health/page.js") },
  { name: "task", title: "Task", key: "", load: () => import("./pages/task/page.js") },
];

/** The pages that `herdbook share` writes as a file. */
export const SHARED = new Set(["now", "board", "graph", "task", "agents", "lanes", "history", "record", "health", "talk", "review"]);
