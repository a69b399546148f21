// History: the journal by transactions, newest first, with filters that stay in the address, Undo for
// each transaction, and the way to the moments before and after it.

import { draw, h } from "../../parts/dom.js";
import { ago, exact } from "../../parts/format.js";
import { isPast, shownMoment } from "../../parts/moment.js";
import { notify } from "../../parts/notices.js";
import { call } from "../../parts/rpc.js";
import { createStillness, hasFocus, showOwnChange } from "../../parts/stillness.js";
import { createTurns } from "../../parts/turns.js";
import { windowed } from "../../parts/windowed.js";

/** @import { Page, Place } from "../../page_table.js" */
/**
 * @typedef {{ seq: number, op: string, entity: string, key: string, name: string | null, text: string }} Entry
 * @typedef {{ seq: number, before: number, tx: string, time: string, who: string | null, note: string | null, entries: Entry[] }} Step
 * @typedef {{ step: Step, entry: Entry, isFirst: boolean, isLast: boolean, isHead?: boolean, left?: number }} Row
 */

const ROW = { narrow: 28, wide: 32 };
const narrow = matchMedia("(max-width: 860px)");
const PAGE = 500;
/** How many changes of a transaction are shown until somebody wants all of them. */
const FOLD = 10;

/** @param {Step} step */
const who = (step) => step.who ?? "somebody";

/** The number of the first change that was read. @param {Step[]} steps */
const oldest = (steps) => steps.at(-1)?.entries[0].seq ?? 0;

/**
 * What was read now, and below it what was read before. A long transaction is read in parts: the rest of
 * one whose end was read again belongs to it.
 * @param {Step[]} newest
 * @param {Step[]} known
 */
function join(newest, known) {
  const from = oldest(newest);
  const joined = [...newest];
  for (const step of known) {
    const rest = step.entries.filter((each) => each.seq < from);
    if (rest.length === step.entries.length) joined.push(step);
    else if (rest.length) joined.push({ ...step, entries: [...rest, .../** @type {Step} */ (joined.pop()).entries] });
  }
  return joined;
}

/** How much of a long transaction was read; nothing of one that was read whole. @param {Step} step */
function part({ seq, before, entries }) {
  const all = seq - before;
  return entries.length === all ? "" : `${entries.length.toLocaleString("en")} of ${all.toLocaleString("en")} changes: `;
}

/**
 * @param {Place} place
 * @returns {Page}
 */
export function open({ root, query, replace }) {
  /** @type {Step[]} Newest first. */
  let steps = [];
  /** All that was read, while what is new waits. @type {Step[] | null} */
  let waiting = null;
  let total = 0;
  /** The first change that there is. */
  let first = Infinity;
  /** The transactions of which all changes are shown. */
  const unfolded = new Set();
  /** The moment that the steps were read for. @type {number | undefined} */
  let moment;
  const filters = { q: query.get("q") ?? "", who: query.get("who") ?? "", kind: query.get("kind") ?? "" };

  const begin = createTurns();
  const still = createStillness({ root, refresh, release, isBusy: () => hasFocus(root) });

  async function refresh() {
    const isLast = begin();
    const at = shownMoment()?.seq;
    const answer = await call("history", { limit: PAGE });
    if (!isLast()) return;
    total = answer.last - answer.first + 1;
    const newest = /** @type {Step[]} */ (answer.steps);
    // What was read before goes on below, unless more has happened since than was read now.
    const known = waiting ?? steps;
    const isNext = at === moment && known.length && known[0].seq >= oldest(newest) - 1;
    const read = isNext ? join(newest, known) : newest;
    const isMore = steps.length > 0 && read[0]?.seq !== steps[0].seq;
    waiting = still.mustWait() && isMore ? read : null;
    if (!waiting) steps = read;
    moment = at;
    first = answer.first;
    show();
  }

  /** Show what waits. */
  function release() {
    if (!waiting) return;
    steps = waiting;
    waiting = null;
    show();
  }

  async function more() {
    const before = oldest(steps);
    const at = moment;
    const answer = await call("history", { before, limit: PAGE });
    if (before !== oldest(steps) || at !== moment) return; // they were read meanwhile
    if (waiting && oldest(waiting) === before) waiting = [...waiting, ...answer.steps];
    steps = [...steps, ...answer.steps];
    first = answer.first;
    show();
  }

  /** @param {Step} step */
  async function undo(step) {
    try {
      await call("undo", { tx: `#${step.seq}` });
      notify(`#${step.seq} was taken back.`);
      await showOwnChange();
    } catch (error) {
      notify(/** @type {Error} */ (error).message, { isRefusal: true });
    }
  }

  /**
   * The changes that the filters let through, by transactions.
   * @param {Step[]} among
   */
  function find(among) {
    const words = filters.q.toLowerCase();
    return among
      .filter((step) => !filters.who || who(step) === filters.who)
      .map((step) => ({
        step,
        found: step.entries.filter(
          (each) =>
            (!filters.kind || each.entity === filters.kind) &&
            (!words || `${each.text} ${who(step)} ${each.key} ${step.note ?? ""}`.toLowerCase().includes(words)),
        ),
      }));
  }

  /**
   * The rows of a transaction; of a long one the first, and one that says how many more there are.
   * @param {{ step: Step, found: Entry[] }} changes
   * @returns {Row[]}
   */
  function rowsOf({ step, found }) {
    const isFolded = found.length > FOLD + 1 && !unfolded.has(step.tx);
    const shown = isFolded ? found.slice(0, FOLD + 1) : found;
    return shown.map((entry, at) => ({
      step,
      entry,
      isFirst: at === 0,
      isLast: at === shown.length - 1,
      left: isFolded && at === FOLD ? found.length - FOLD : 0,
    }));
  }

  /** @param {Row} row */
  const drawMore = ({ step, entry, left }) =>
    h(
      "li",
      { key: `more ${entry.seq}`, class: "row rest" },
      h("span"),
      h("span"),
      h("span"),
      h("button", { class: "quiet unfold", onclick: () => (unfolded.add(step.tx), show()) }, `and ${left?.toLocaleString("en")} more`),
      h("span"),
      h("span"),
    );

  /**
   * @param {"who" | "kind"} name
   * @param {string} label
   * @param {string[]} values
   */
  function choice(name, label, values) {
    return h(
      "select",
      { key: name, "aria-label": label, onchange: (/** @type {Event} */ event) => set(name, /** @type {HTMLSelectElement} */ (event.currentTarget).value) },
      ["", ...values].map((each) => h("option", { key: each, value: each, selected: each === filters[name] }, each ? each.replaceAll("_", " ") : label)),
    );
  }

  /**
   * @param {"q" | "who" | "kind"} name
   * @param {string} value
   */
  function set(name, value) {
    filters[name] = value;
    keepAddress();
    show();
  }

  function clear() {
    filters.q = filters.who = filters.kind = "";
    keepAddress();
    show();
  }

  function keepAddress() {
    const asked = new URLSearchParams(Object.entries(filters).filter(([, each]) => each));
    replace(asked.size ? `/history?${asked}` : "/history");
  }

  /** On a narrow screen, what is told of a transaction stands above its changes. @param {Row} row @returns {Row[]} */
  const withHead = (row) => (row.isFirst ? [{ ...row, isLast: false, isHead: true }, { ...row, isFirst: false }] : [row]);

  /** @param {Row} row */
  function drawRow(row) {
    const { step, entry, isFirst, isLast, isHead } = row;
    if (row.left) return drawMore(row);
    const text = [entry === step.entries[0] && part(step) && h("span", { class: "mute" }, part(step)), entry.text];
    const title = step.note ? `${entry.text} [${step.note}]` : entry.text;
    return h(
      "li",
      { key: isHead ? `head ${entry.seq}` : entry.seq, class: `row${isHead ? " head" : isFirst ? "" : " rest"}${isLast ? "" : " open"}` },
      h("code", { class: "mute" }, `#${entry.seq}`),
      isFirst ? h("time", { datetime: step.time, title: exact(step.time) }, ago(step.time)) : h("span"),
      h("span", { class: "mute" }, isFirst && who(step)),
      isHead ? h("span") : entry.entity === "tasks" && entry.op !== "remove" ? h("a", { href: `/task/${entry.key}`, title }, text) : h("span", { title }, text),
      h(
        "span",
        { class: "moments" },
        isFirst && h("a", { href: `/board?at=${step.before}`, title: "the board as it was before this", "aria-label": `Board before change ${step.seq}` }, "before"),
        isFirst && h("a", { href: `/board?at=${step.seq}`, title: "the board as it was after this", "aria-label": `Board after change ${step.seq}` }, "after"),
      ),
      isFirst && !isPast() ? h("button", { class: "quiet", "aria-label": `Undo change ${step.seq}`, onclick: () => undo(step) }, "Undo") : h("span"),
    );
  }

  /** Nothing passes the filters: how to see something again. */
  function drawNoMatch() {
    const isWhole = isAll() ? "" : " Earlier changes were not read yet.";
    return h("p", { key: "no match", class: "calm" }, `No change matches.${isWhole} `, h("button", { class: "quiet", onclick: clear }, "Clear the filter"), drawMoreButton());
  }

  const isAll = () => oldest(steps) <= first;
  const drawMoreButton = () => !isAll() && h("button", { class: "quiet", onclick: more }, "earlier changes");

  function show() {
    const read = waiting ?? steps;
    const changes = find(read);
    const count = changes.reduce((sum, { found }) => sum + found.length, 0);
    const rows = (waiting ? find(steps) : changes).flatMap(rowsOf);
    const last = steps[0]?.seq ?? 0;
    const fresh = changes.filter(({ step, found }) => step.seq > last && found.length).length;
    const loaded = read.reduce((sum, each) => sum + each.entries.length, 0);
    const people = [...new Set(read.map(who))].sort();
    const kinds = [...new Set(read.flatMap((step) => step.entries.map((each) => each.entity)))].sort();
    const counts = count === total ? total.toLocaleString("en") : `${count.toLocaleString("en")} of ${(isAll() ? loaded : total).toLocaleString("en")}`;
    draw(root, [
      h(
        "div",
        { key: "filter", class: "filter" },
        h("h1", null, "History ", h("span", { class: "mute" }, counts)),
        h("input", { type: "search", value: filters.q, "aria-label": "Filter changes", placeholder: "Filter ( / )", oninput: (/** @type {Event} */ event) => set("q", /** @type {HTMLInputElement} */ (event.currentTarget).value) }),
        choice("who", "everybody", people),
        choice("kind", "everything", kinds),
        !isAll() && h("span", { class: "mute wide" }, `the last ${loaded.toLocaleString("en")} were read`),
      ),
      still.draw(
        fresh > 0 ? `${fresh} new` : "",
        rows.length
          ? windowed({
              name: "history",
              label: "Changes",
              items: narrow.matches ? rows.flatMap(withHead) : rows,
              rowHeight: narrow.matches ? ROW.narrow : ROW.wide,
              row: drawRow,
              redraw: show,
              foot: !isAll() && h("p", { class: "more" }, drawMoreButton()),
            })
          : steps.length
            ? drawNoMatch()
            : h("p", { key: "none", class: "calm" }, isPast() ? "Nothing had happened yet." : ["Nothing has happened yet. ", h("code", null, "herdbook task add 'write the parser'")]),
      ),
    ]);
  }

  return {
    refresh,
    tick: show,
    keys: { "/": () => /** @type {HTMLElement | null} */ (root.querySelector("input"))?.focus() },
    help: [["/", "filter"]],
  };
}
