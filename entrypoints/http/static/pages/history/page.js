// History: the journal by transactions, newest first, with filters that stay in the address, Undo for
// each transaction, and the way to the moments before and after it.

import { draw, h } from "../../parts/dom.js";
import { ago, exact } from "../../parts/format.js";
import { isPast, shownMoment } from "../../parts/moment.js";
import { notify } from "../../parts/notices.js";
import { call } from "../../parts/rpc.js";
import { windowed } from "../../parts/windowed.js";

/** @import { Page, Place } from "../../page_table.js" */
/**
 * @typedef {{ seq: number, op: string, entity: string, key: string, name: string | null, text: string }} Entry
 * @typedef {{ seq: number, before: number, tx: string, time: string, who: string | null, note: string | null, entries: Entry[] }} Step
 * @typedef {{ step: Step, entry: Entry, isFirst: boolean, isLast: boolean }} Row
 */

const ROW = { narrow: 56, wide: 32 };
const narrow = matchMedia("(max-width: 860px)");
const PAGE = 500;

/** @param {Step} step */
const who = (step) => step.who ?? "somebody";

/**
 * @param {Place} place
 * @returns {Page}
 */
export function open({ root, query, replace }) {
  /** @type {Step[]} Newest first. */
  let steps = [];
  let total = 0;
  let isAll = false;
  /** The moment that the steps were read for. @type {number | undefined} */
  let moment;
  const filters = { q: query.get("q") ?? "", who: query.get("who") ?? "", kind: query.get("kind") ?? "" };

  async function refresh() {
    const at = shownMoment()?.seq;
    const answer = await call("history", { limit: PAGE });
    total = answer.last - answer.first + 1;
    const newest = /** @type {Step[]} */ (answer.steps);
    const reach = newest.length ? newest[newest.length - 1].before : 0;
    // What was read before goes on below, unless more has happened since than was read now.
    const known = at === moment && steps.length && steps[0].seq >= reach ? steps.filter((each) => each.seq <= reach) : [];
    steps = [...newest, ...known];
    moment = at;
    note(answer.first);
    show();
  }

  async function more() {
    const answer = await call("history", { before: steps[steps.length - 1].before + 1, limit: PAGE });
    steps = [...steps, ...answer.steps];
    note(answer.first);
    show();
  }

  /** @param {number} first */
  function note(first) {
    isAll = !steps.length || steps[steps.length - 1].before < first;
  }

  /** @param {Step} step */
  async function undo(step) {
    try {
      await call("undo", { tx: `#${step.seq}` });
      notify(`#${step.seq} was taken back.`);
    } catch (error) {
      notify(/** @type {Error} */ (error).message, { isRefusal: true });
    }
  }

  /** @returns {Row[]} */
  function find() {
    const words = filters.q.toLowerCase();
    return steps
      .filter((step) => !filters.who || who(step) === filters.who)
      .flatMap((step) => {
        const found = step.entries.filter(
          (each) =>
            (!filters.kind || each.entity === filters.kind) &&
            (!words || `${each.text} ${who(step)} ${each.key} ${step.note ?? ""}`.toLowerCase().includes(words)),
        );
        return found.map((entry, at) => ({ step, entry, isFirst: at === 0, isLast: at === found.length - 1 }));
      });
  }

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
    const asked = new URLSearchParams(Object.entries(filters).filter(([, each]) => each));
    replace(asked.size ? `/history?${asked}` : "/history");
    show();
  }

  /** @param {Row} row */
  function drawRow({ step, entry, isFirst, isLast }) {
    const title = step.note ? `${entry.text} [${step.note}]` : entry.text;
    return h(
      "li",
      { key: entry.seq, class: `row${isFirst ? "" : " rest"}${isLast ? "" : " open"}` },
      h("code", { class: "mute" }, `#${entry.seq}`),
      isFirst ? h("time", { datetime: step.time, title: exact(step.time) }, ago(step.time)) : h("span"),
      h("span", { class: "mute" }, isFirst && who(step)),
      entry.entity === "tasks" && entry.op !== "remove" ? h("a", { href: `/task/${entry.key}`, title }, entry.text) : h("span", { title }, entry.text),
      h(
        "span",
        { class: "moments" },
        isFirst && h("a", { href: `/board?at=${step.before}`, title: "the board as it was before this", "aria-label": `Board before change ${step.seq}` }, "before"),
        isFirst && h("a", { href: `/board?at=${step.seq}`, title: "the board as it was after this", "aria-label": `Board after change ${step.seq}` }, "after"),
      ),
      isFirst && !isPast() ? h("button", { class: "quiet", "aria-label": `Undo change ${step.seq}`, onclick: () => undo(step) }, "Undo") : h("span"),
    );
  }

  function show() {
    const found = find();
    const loaded = steps.reduce((sum, each) => sum + each.entries.length, 0);
    const people = [...new Set(steps.map(who))].sort();
    const kinds = [...new Set(steps.flatMap((step) => step.entries.map((each) => each.entity)))].sort();
    const counts = found.length === total ? total.toLocaleString("en") : `${found.length.toLocaleString("en")} of ${(isAll ? loaded : total).toLocaleString("en")}`;
    draw(root, [
      h(
        "div",
        { key: "filter", class: "filter" },
        h("h1", null, "History ", h("span", { class: "mute" }, counts)),
        h("input", { type: "search", value: filters.q, "aria-label": "Filter changes", placeholder: "Filter ( / )", oninput: (/** @type {Event} */ event) => set("q", /** @type {HTMLInputElement} */ (event.currentTarget).value) }),
        choice("who", "everybody", people),
        choice("kind", "everything", kinds),
        !isAll && h("span", { class: "mute wide" }, `the last ${loaded.toLocaleString("en")} were read`),
      ),
      steps.length
        ? windowed({
            name: "history",
            label: "Changes",
            items: found,
            rowHeight: narrow.matches ? ROW.narrow : ROW.wide,
            row: drawRow,
            redraw: show,
            foot: !isAll && h("p", { class: "more" }, h("button", { class: "quiet", onclick: more }, "earlier changes")),
          })
        : h("p", { key: "none", class: "calm" }, isPast() ? "Nothing had happened yet." : ["Nothing has happened yet. ", h("code", null, "herdbook task add 'write the parser'")]),
    ]);
  }

  return {
    refresh,
    tick: show,
    keys: { "/": () => /** @type {HTMLElement | null} */ (root.querySelector("input"))?.focus() },
    help: [["/", "filter"]],
  };
}
