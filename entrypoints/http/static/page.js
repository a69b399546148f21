// The shell of the dashboard: the head, the router, the keys, and what keeps a page up to date.

import { noteActivities } from "./parts/activity.js";
import { draw, h } from "./parts/dom.js";
import { follow } from "./parts/feed.js";
import { many } from "./parts/format.js";
import { handleKey } from "./parts/keys.js";
import { openPalette, openHelp } from "./parts/palette.js";
import { call, chooseFolder, chosenFolder, exchangeTicket, Refusal, servedFolders } from "./parts/rpc.js";
import { setTheme, themeName } from "./parts/theme.js";
import { PAGES } from "./page_table.js";

/** @import { Page, PageRow } from "./page_table.js" */

const PAUSE = 100;
const TICK = 5000;
const SECOND = 1000;
const head = /** @type {HTMLElement} */ (document.getElementById("head"));
const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const icon = /** @type {HTMLLinkElement} */ (document.getElementById("icon"));

/** @type {{ row: PageRow, page: Page | null, folders: string[], isConnected: boolean, waiting: number }} */
const state = { row: PAGES[0], page: null, folders: [], isConnected: true, waiting: 0 };
let visit = 0;

/** @param {string} path */
function go(path) {
  history.pushState(null, "", path);
  open();
}

/** Open the page of the address. */
async function open() {
  const [, name, ...rest] = location.pathname.split("/");
  const row = PAGES.find((each) => each.name === (name || "now")) ?? PAGES[0];
  const own = ++visit;
  state.row = row;
  state.page = null;
  showHead();
  try {
    const [module] = await Promise.all([row.load(), loadStyle(row.name)]);
    if (own !== visit) return;
    const root = document.createElement("div");
    root.className = `page ${row.name}`;
    const page = module.open({
      root,
      key: rest.length ? decodeURIComponent(rest.join("/")) : null,
      query: new URLSearchParams(location.search),
      go,
      replace: (path) => history.replaceState(null, "", path),
    });
    await page.refresh();
    if (own !== visit) return;
    state.page = page;
    main.replaceChildren(root);
    scrollTo(0, 0);
    main.dataset.ready = row.name;
  } catch (error) {
    if (own === visit) showTrouble(/** @type {Error} */ (error).message);
  }
}

/** @type {Map<string, Promise<void>>} */
const styles = new Map();

/**
 * Load what a page needs in CSS, `page.css` of its folder, once.
 * @param {string} name
 */
function loadStyle(name) {
  const known = styles.get(name);
  if (known) return known;
  const loading = new Promise((/** @type {(value: void) => void} */ resolve, reject) => {
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.href = `/static/pages/${name}/page.css`;
    link.onload = () => resolve();
    link.onerror = () => {
      styles.delete(name);
      link.remove();
      reject(new Refusal("The server does not answer; `herdbook serve` starts it.", 0));
    };
    document.head.append(link);
  });
  styles.set(name, loading);
  return loading;
}

/** @param {string} text */
function showTrouble(text) {
  const place = document.createElement("div");
  draw(place, [h("p", { class: "trouble", role: "alert" }, text)]);
  main.replaceChildren(place);
}

function showHead() {
  document.title = `${state.waiting ? `(${state.waiting}) ` : ""}${state.row.title} · Herdbook`;
  icon.href = state.waiting ? "/static/icon-waiting.svg" : "/static/icon.svg";
  const links = PAGES.filter((row) => row.key).map((row) =>
    h(
      "a",
      {
        key: row.name,
        href: row.name === "now" ? "/" : `/${row.name}`,
        "aria-current": row === state.row ? "page" : null,
      },
      row.title,
      row.name === "now" && state.waiting > 0 &&
        h("b", { class: "count", title: `${many(state.waiting, "thing")} for you` }, state.waiting),
    ),
  );
  const next = themeName() === "dark" ? "light" : "dark";
  draw(head, [
    h("a", { class: "name", href: "/" }, "Herdbook"),
    h("nav", { "aria-label": "Pages" }, links),
    h(
      "div",
      { class: "tools" },
      state.folders.length > 1 && chooser(),
      h("button", { class: "quiet", onclick: () => openPalette(go) , title: "Ctrl K" }, "Commands"),
      h("button", { class: "quiet wide", onclick: showKeys, title: "?" }, "Keys"),
      h("button", { class: "quiet", onclick: () => (setTheme(next), showHead()) }, next === "dark" ? "Dark" : "Light"),
      h(
        "span",
        { class: state.isConnected ? "live" : "live off", role: "status" },
        state.isConnected ? "live" : "no connection",
      ),
    ),
  ]);
}

function chooser() {
  const chosen = chosenFolder() ?? state.folders[0];
  return h(
    "select",
    {
      "aria-label": "Repository",
      onchange: (/** @type {Event} */ event) => {
        chooseFolder(/** @type {HTMLSelectElement} */ (event.currentTarget).value);
        open();
        countWaiting();
      },
    },
    state.folders.map((each) =>
      h("option", { key: each, value: each, selected: each === chosen }, each.split("/").pop()),
    ),
  );
}

function showKeys() {
  const pages = PAGES.filter((row) => row.key);
  openHelp([
    ["Ctrl K", "every command"],
    ...pages.map((row) => /** @type {[string, string]} */ ([`g ${row.key}`, row.title])),
    ["?", "these keys"],
    ...(state.page?.help ?? []),
  ]);
}

async function countWaiting() {
  state.waiting = (await call("waiting")).length;
  showHead();
}

let planned = 0;
let isBusy = false;
let isAgain = false;

/** Read again what is shown, soon, and once for many changes. */
function refreshSoon() {
  clearTimeout(planned);
  planned = window.setTimeout(refresh, PAUSE);
}

async function refresh() {
  if (isBusy) {
    isAgain = true;
    return;
  }
  isBusy = true;
  try {
    await Promise.all([state.page?.refresh(), countWaiting()]);
  } catch {
    // The head says that there is no connection; the next change or its return reads again.
  } finally {
    isBusy = false;
    if (isAgain) {
      isAgain = false;
      refreshSoon();
    }
  }
}

let lastTick = 0;
let plannedTick = 0;

/** Draw again what is shown, at most once a second: what agents do changes more often. */
function tickSoon() {
  if (plannedTick) return;
  plannedTick = window.setTimeout(() => {
    plannedTick = 0;
    lastTick = Date.now();
    state.page?.tick?.();
  }, Math.max(0, lastTick + SECOND - Date.now()));
}

/** @param {MouseEvent} event */
function followLink(event) {
  const link = /** @type {Element} */ (event.target).closest("a[href]");
  const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey;
  const href = link?.getAttribute("href");
  if (!href?.startsWith("/") || !isPlain || event.defaultPrevented) return;
  event.preventDefault();
  go(href);
}

async function start() {
  setTheme(themeName());
  await exchangeTicket();
  state.folders = await servedFolders();
  const chosen = chosenFolder();
  if (chosen && !state.folders.includes(chosen)) chooseFolder(state.folders[0]);
  document.addEventListener("click", followLink);
  document.addEventListener("keydown", (event) =>
    handleKey(event, {
      pages: Object.fromEntries(PAGES.map((row) => [row.key, () => go(row.name === "now" ? "/" : `/${row.name}`)])),
      page: state.page?.keys ?? {},
      palette: () => openPalette(go),
      help: showKeys,
    }),
  );
  addEventListener("popstate", open);
  follow((news) => {
    if (news.isConnected !== state.isConnected) {
      state.isConnected = news.isConnected;
      showHead();
    }
    if (news.activities?.length) {
      noteActivities(news.activities);
      tickSoon();
    }
    if (news.kind === "changed") refreshSoon();
  });
  setInterval(() => state.page?.tick?.(), TICK);
  await Promise.all([open(), countWaiting()]);
}

start().catch((error) => {
  showHead();
  showTrouble(error.message);
});
