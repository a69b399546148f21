// A list of any length of which only the rows that can be seen are in the document.

import { h } from "./dom.js";

const BEYOND = 4;
/** @type {Map<string, { top: number, height: number }>} */
const views = new Map();

/**
 * @template T
 * @param {{ name: string, label: string, items: T[], rowHeight: number, tag?: string,
 *   row: (item: T, at: number) => any, redraw: () => void, foot?: any }} options
 *   `name` is that of the list, `row` draws an item, which must be `rowHeight` pixels high
 * @returns {import("./dom.js").Drawing}
 */
export function windowed({ name, label, items, rowHeight, row, redraw, foot, tag = "ul" }) {
  const view = views.get(name) ?? { top: 0, height: 720 };
  views.set(name, view);
  const first = Math.max(0, Math.floor(view.top / rowHeight) - BEYOND);
  const count = Math.ceil(view.height / rowHeight) + 2 * BEYOND;
  const shown = items.slice(first, first + count);
  const below = Math.max(0, items.length - first - shown.length);
  return h(
    "div",
    {
      class: "windowed",
      key: `list ${name}`,
      tabindex: "0",
      role: "group",
      "aria-label": label,
      onscroll: (/** @type {Event} */ event) => {
        const box = /** @type {HTMLElement} */ (event.currentTarget);
        const before = Math.floor(view.top / rowHeight);
        view.top = box.scrollTop;
        view.height = box.clientHeight;
        if (Math.floor(view.top / rowHeight) !== before) requestAnimationFrame(redraw);
      },
    },
    h("div", { class: "above", style: { height: `${first * rowHeight}px` } }),
    h(tag, { class: "rows", "aria-label": label }, shown.map((item, at) => row(item, first + at))),
    h("div", { class: "below", style: { height: `${below * rowHeight}px` } }),
    foot,
  );
}
