// The shell of the dashboard: the head, the router, the keys, and what keeps a page up to date.

import { noteActivities } from "./parts/activity.js";
import { draw, h, withCode } from "./parts/dom.js";
import { follow } from "./parts/feed.js";
import { many } from "./parts/format.js";
import { handleKey } from "./parts/keys.js";
import { addressOf, isPast, shownMoment } from "./parts/moment.js";
import { openPalette, openHelp } from "./parts/palette.js";
import { addServed, keepRepository, servedRepositories, shownRepository, takeRepository, withRepository } from "./parts/repository.js";
import { countText, iconOf, noteWaiting } from "./parts/notifications.js";
import { createRewind } from "./parts/rewind.js";
import { callNow, exchangeTicket, readRepositories, Refusal } from "./parts/rpc.js";
import { setTheme, themeName } from "./parts/theme.js";
import { PAGES, SHARED } from "./page_table.js";

/** @import { Page, PageRow } from "./page_table.js" */

const PAUSE = 100;
const TICK = 5000;
/** How long it is shown that a journal cannot be read: the feed says so again as long as that is so. */
const TROUBLE = 12_000;
const SECOND = 1000;
/** The pages that are shared with the id in their address. */
const WITH_ID = ["task", "talk", "review"];
const head = /** @type {HTMLElement} */ (document.getElementById("head"));
const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const stale = /** @type {HTMLElement} */ (document.getElementById("stale"));
const icon = /** @type {HTMLLinkElement} */ (document.getElementById("icon"));

/** @type {{ row: PageRow, title: string, page: Page | null, root: Element | null, isConnected: boolean, refusal: string, trouble: string, waiting: number, waitingText: string }} */
const state = { row: PAGES[0], title: "", page: null, root: null, isConnected: true, refusal: "", trouble: "", waiting: 0, waitingText: "" };
let visit = 0;
/** Asks the feed for a space. */
let askFeed = (/** @type {string} */ _) => {};

const rewind = createRewind({
  banner: /** @type {HTMLElement} */ (document.getElementById("past")),
  bar: /** @type {HTMLElement} */ (document.getElementById("rewind")),
  changed: async () => {
    showHead();
    isConcerned = true;
    lastRead = 0;
    await readAll();
  },
  move: (isStep) => {
    const asked = new URLSearchParams(location.search);
    asked.delete("at");
    const path = addressOf(asked.size ? `${location.pathname}?${asked}` : location.pathname);
    if (isStep) history.replaceState(null, "", path);
    else history.pushState(null, "", path);
  },
  focus: () => /** @type {HTMLElement | null} */ (head.querySelector("button[aria-pressed]"))?.focus(),
});

/**
 * Open a page, at the moment that is shown.
 * @param {string} path
 */
function go(path) {
  history.pushState(null, "", addressOf(path));
  open();
}

/** Open the page of the address. */
async function open() {
  const [, name, ...rest] = location.pathname.split("/");
  const row = PAGES.find((each) => each.name === (name || "now")) ?? PAGES[0];
  const own = ++visit;
  const asked = new URLSearchParams(location.search);
  const at = asked.get("at");
  state.row = row;
  state.title = row.title;
  state.page = null;
  state.refusal = "";
  const isServed = showRepository(asked.get("repo"));
  showHead();
  showLink();
  try {
    if (!isServed) throw new Refusal("The repository of this address is not served here; `herdbook serve` in it adds it.", 0);
    const [module] = await Promise.all([row.load(), loadStyle(row.name), rewind.take(at)]);
    if (own !== visit) return;
    showHead();
    const root = document.createElement("div");
    root.className = `page ${row.name}`;
    const page = module.open({
      root,
      key: rest.length ? decodeURIComponent(rest.join("/")) : null,
      query: new URLSearchParams(location.search),
      go,
      replace: (path) => {
        if (own === visit) history.replaceState(null, "", addressOf(path));
      },
      entitle: (name) => {
        if (own !== visit) return;
        state.title = name;
        showTitle();
      },
    });
    state.root = root;
    scrollTo(0, 0);
    isConcerned = false;
    await read(page);
    if (own !== visit) return;
    main.dataset.ready = row.name;
    if (isConcerned) refreshSoon(); // something changed while it was read
  } catch (error) {
    if (own === visit) showTrouble(/** @type {Error} */ (error).message.replace(/^until: /, "The moment of this address "));
  }
}

/**
 * Show the repository that an address names, and name it in the address. What is shown of another one
 * goes at once: its buttons would change this one. Returns whether it is served.
 * @param {string | null} key
 */
function showRepository(key) {
  const before = shownRepository();
  const isServed = takeRepository(key);
  const now = shownRepository();
  if (!isServed) return false;
  if (key === null) nameRepository();
  if (before && before !== now) {
    fill();
    rewind.take(null); // its journal is another one
    state.waiting = 0;
    counts++;
    refreshSoon();
  }
  if (now) askFeed(now.key);
  return true;
}

/** Name the repository in the address, where several are served. */
function nameRepository() {
  const path = location.pathname + location.search;
  if (withRepository(path) !== path) history.replaceState(null, "", withRepository(path));
}

/**
 * Read what a page shows, and show it. What is not known of an earlier moment is said in its place:
 * the page stays open for other moments.
 * @param {Page} page
 */
async function read(page) {
  const own = visit;
  const moment = shownMoment()?.seq;
  try {
    await page.refresh();
  } catch (error) {
    if (!isPast()) throw error;
    if (own !== visit) return;
    state.page = page;
    const isAboutNow = error instanceof Refusal && error.data?.about === "now";
    showTrouble(isAboutNow ? `${state.row.title} is about now: what it showed at an earlier moment is not known.` : /** @type {Error} */ (error).message);
    return;
  }
  if (own !== visit) return;
  // What was read of another moment was not shown.
  if (state.page !== page && moment !== shownMoment()?.seq) return read(page);
  state.page = page;
  if (!state.root || state.root === main.firstChild) return;
  useStyle(state.row.name);
  fill(state.root);
}

/**
 * Show something in the place of the page; the focus stays in that place.
 * @param {Element[]} content
 */
function fill(...content) {
  const isHeld = main.contains(document.activeElement);
  main.replaceChildren(...content);
  if (isHeld) main.focus({ preventScroll: true });
}

/** @type {Map<string, Promise<void>>} */
const styles = new Map();

/**
 * Let the style of one page count and no other: their names of classes mean different things.
 * @param {string} name
 */
function useStyle(name) {
  for (const link of document.head.querySelectorAll("link[data-page]")) {
    const { sheet, dataset } = /** @type {HTMLLinkElement} */ (link);
    if (sheet) sheet.disabled = dataset.page !== name;
  }
}

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
    link.dataset.page = name;
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
  place.className = "page";
  const isElsewhere = !isPast() && new URLSearchParams(location.search).has("at");
  draw(place, [
    h("h1", null, state.row.title),
    h("p", { class: "trouble", role: "alert" }, withCode(text)),
    isElsewhere && h("p", null, h("a", { href: location.pathname }, "Back to now")),
  ]);
  fill(place);
}

function showTitle() {
  document.title = `${state.waiting ? `(${state.waitingText}) ` : ""}${state.title} · Herdbook`;
}

function showHead() {
  showTitle();
  icon.href = iconOf(state.waiting);
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
        h("b", { class: "count", title: `${many(state.waiting, "thing")}${state.waitingText.endsWith("+") ? " and more" : ""} for you` }, state.waitingText),
    ),
  );
  const next = themeName() === "dark" ? "light" : "dark";
  const why = state.refusal || state.trouble;
  draw(stale, [why && h("p", { class: "trouble", role: "alert" }, "Not up to date: ", withCode(why))]);
  draw(head, [
    h("a", { class: "name", href: "/" }, "Herdbook"),
    h("nav", { "aria-label": "Pages" }, links),
    h(
      "div",
      { class: "tools" },
      servedRepositories().length > 1 && chooser(),
      h("button", { class: "quiet", onclick: showPalette, title: "Ctrl K" }, "Commands"),
      h("button", { class: "quiet", "aria-pressed": String(isPast()), onclick: rewind.enter, title: "[" }, "Rewind"),
      h("button", { class: "quiet wide", onclick: showKeys, title: "?" }, "Keys"),
      h("button", { class: "quiet", onclick: () => (setTheme(next), showHead()) }, next === "dark" ? "Dark" : "Light"),
      h(
        "span",
        { class: why || !state.isConnected ? "live off" : isPast() ? "live then" : "live", role: "status", title: why || null },
        why ? "not up to date" : !state.isConnected ? "no connection" : isPast() ? "earlier" : "live",
      ),
    ),
  ]);
}

/** Scroll the names of the pages, on a narrow screen, until that of this page is seen. */
function showLink() {
  const nav = /** @type {HTMLElement} */ (head.querySelector("nav"));
  const link = /** @type {HTMLElement | null} */ (nav.querySelector("[aria-current]"));
  if (link) nav.scrollLeft = link.offsetLeft - nav.offsetLeft - (nav.clientWidth - link.offsetWidth) / 2;
}

function chooser() {
  return h(
    "select",
    {
      "aria-label": "Repository",
      value: shownRepository()?.key,
      onchange: (/** @type {Event} */ event) => {
        const { value } = /** @type {HTMLSelectElement} */ (event.currentTarget);
        // A moment, an id and a filter of this one say nothing there.
        const path = state.row.key && state.row.name !== "now" ? `/${state.row.name}` : "/";
        keepRepository(value);
        history.pushState(null, "", `${path}?repo=${value}`);
        open();
      },
    },
    servedRepositories().map(({ key, folder }) =>
      h("option", { key, value: key, selected: key === shownRepository()?.key }, folder.split("/").pop()),
    ),
  );
}

function showPalette() {
  const { name, title } = state.row;
  const at = shownMoment();
  const [, , key] = location.pathname.split("/");
  const words = ["herdbook", "share", name, WITH_ID.includes(name) && decodeURIComponent(key ?? ""), at && `--at ${at.seq}`, `-o ${name}.html`];
  const hint = {
    name: "share",
    summary: `write ${title} as one HTML file, which needs no server and no scripts`,
    command: words.filter(Boolean).join(" "),
  };
  openPalette(go, SHARED.has(name) ? [hint] : []);
}

function showKeys() {
  const pages = PAGES.filter((row) => row.key);
  openHelp([
    ["Ctrl K", "every command"],
    ...pages.map((row) => /** @type {[string, string]} */ ([`g ${row.key}`, row.title])),
    ["[ ]", "one change back, one on"],
    ...(isPast() ? [/** @type {[string, string]} */ (["space", "play the changes"])] : []),
    ["?", "these keys"],
    ...(state.page?.help ?? []),
  ]);
}

let counts = 0;

async function countWaiting() {
  const own = ++counts;
  const entries = await callNow("waiting");
  if (own !== counts) return; // it was asked again since
  const isOther = state.waiting > 0 !== entries.length > 0;
  state.waiting = entries.length;
  state.waitingText = countText(entries);
  noteWaiting(entries, () => go("/"));
  showHead();
  if (isOther) showLink(); // the number has made the names wider, or it has gone
}

let planned = 0;
let plannedPage = 0;
let isBusy = false;
let isAgain = false;
/** Whether something changed that the page shows, and when it was read last. */
let isConcerned = false;
let lastRead = 0;
/** Whether the journal has grown while an earlier moment is shown. */
let isGrown = false;

/** When the last reading ended, and how long it took. */
let lastEnd = 0;
let lastTook = 0;

/**
 * Read again what is shown: at once, and for changes that follow closely once, after a pause that is as
 * long as the reading was. Further changes do not postpone it.
 */
function refreshSoon() {
  planned ||= window.setTimeout(refresh, Math.max(0, lastEnd + Math.max(PAUSE, lastTook) - Date.now()));
}

/**
 * Whether a change in a space, or in one that is not named, is of what a page shows.
 * @param {Page | null} page
 * @param {string | null | undefined} space
 */
const shows = (page, space) => !page?.area || !space || space.startsWith(`${page.area}/`);

/** Read the page again, unless nothing that it shows has changed, or later if it was read just now. */
async function refreshPage() {
  const { page } = state;
  if (!page || !isConcerned) return;
  const early = lastRead + (page.pause ?? 0) - Date.now();
  if (early > 0) {
    clearTimeout(plannedPage);
    plannedPage = window.setTimeout(refresh, early);
    return;
  }
  isConcerned = false;
  lastRead = Date.now();
  try {
    await read(page);
  } catch (error) {
    isConcerned = true;
    throw error;
  }
}

async function refresh() {
  planned = 0;
  if (isBusy) {
    isAgain = true;
    return;
  }
  isBusy = true;
  const begun = Date.now();
  const grows = isGrown && rewind.noteChange();
  isGrown = false;
  await Promise.all([readAll(), grows]);
  lastEnd = Date.now();
  lastTook = lastEnd - begun;
  isBusy = false;
  if (isAgain) {
    isAgain = false;
    refreshSoon();
  }
}

/** Read the page and what waits, whatever is being read already. */
async function readAll() {
  const own = visit;
  try {
    await Promise.all([refreshPage(), countWaiting()]);
    if (own === visit && !isConcerned) showRefusal("");
  } catch (error) {
    // Without an answer the head says that there is no connection; the next change or its return reads again.
    if (own === visit && error instanceof Refusal && error.code !== 0) showRefusal(error.message);
  }
}

/**
 * Say above the page why what it shows is old.
 * @param {string} text
 */
function showRefusal(text) {
  if (state.refusal === text) return;
  state.refusal = text;
  showHead();
}

let troubleEnd = 0;

/** @param {string} text */
function showTroubleOfJournal(text) {
  clearTimeout(troubleEnd);
  if (text) troubleEnd = window.setTimeout(() => showTroubleOfJournal(""), TROUBLE);
  if (state.trouble === text) return;
  state.trouble = text;
  showHead();
}

let lastTick = 0;
let plannedTick = 0;

/** Draw times again; those of an earlier moment stand still. */
function tick() {
  if (!isPast()) state.page?.tick?.();
}

/** Draw again what is shown, at most once a second: what agents do changes more often. */
function tickSoon() {
  if (plannedTick) return;
  plannedTick = window.setTimeout(() => {
    plannedTick = 0;
    lastTick = Date.now();
    tick();
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
  addServed(await readRepositories());
  document.addEventListener("click", followLink);
  document.addEventListener("keydown", (event) =>
    handleKey(event, {
      pages: Object.fromEntries(PAGES.map((row) => [row.key, () => go(row.name === "now" ? "/" : `/${row.name}`)])),
      page: state.page?.keys ?? {},
      moment: rewind.keys(),
      palette: showPalette,
      help: showKeys,
    }),
  );
  addEventListener("popstate", open);
  askFeed = follow((news) => {
    if (news.repositories) {
      addServed(news.repositories);
      nameRepository();
      showHead();
    }
    if (news.isConnected !== state.isConnected) {
      state.isConnected = news.isConnected;
      showHead();
      // A page that could not be opened meanwhile is there now; its module is only asked for again by a reload.
      if (state.isConnected && !state.page && main.querySelector(".trouble")) location.reload();
    }
    if (news.activities?.length) {
      noteActivities(news.activities);
      tickSoon();
    }
    if (news.trouble) showTroubleOfJournal(news.trouble);
    // Whoever is refused the feed is told why by an answer.
    if (news.kind === "refused" && !state.refusal) refreshSoon();
    if (news.kind !== "changed") return;
    if (news.space) showTroubleOfJournal("");
    if (isPast()) isGrown = true;
    else isConcerned ||= shows(state.page, news.space);
    refreshSoon();
  });
  setInterval(() => {
    tick();
    if (state.refusal) refreshSoon();
  }, TICK);
  await Promise.all([open(), countWaiting()]);
}

start().catch((error) => {
  state.isConnected = false;
  showHead();
  showTrouble(error.message);
});
