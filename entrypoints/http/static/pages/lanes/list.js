// The same as a list: what agents held, asked and committed, newest first, for those who rather read.

import { h } from "../../parts/dom.js";
import { clockTime, exact } from "../../parts/format.js";
import { windowed } from "../../parts/windowed.js";
import { describe, describeMark, lookOf, markOf } from "./bars.js";

/** @import { Lane, Mark, Span } from "./bars.js" */

const ROW = 32;
const SIGNS = /** @type {Record<string, string>} */ ({ asked: "?", answered: "↩", commit: "·" });

/**
 * @param {Lane[]} lanes
 * @param {(lane: Lane) => string} nameOf
 * @param {number} now
 * @param {() => void} redraw
 */
export function drawList(lanes, nameOf, now, redraw) {
  const items = lanes
    .flatMap((lane) => [...lane.spans.map((span) => ofSpan(span, lane)), ...lane.marks.map((mark) => ofMark(mark, lane))])
    .sort((one, other) => (one.at < other.at ? 1 : -1));

  /**
   * @param {Span} span
   * @param {Lane} lane
   */
  function ofSpan(span, lane) {
    return { at: span.since, lane, sign: markOf(span), look: lookOf(span), task: span.task_id, text: describe(span, now) };
  }

  /**
   * @param {Mark} mark
   * @param {Lane} lane
   */
  function ofMark(mark, lane) {
    return { at: mark.at, lane, sign: SIGNS[mark.kind] ?? "", look: mark.kind, task: mark.task_id, text: describeMark(mark) };
  }

  return windowed({
    name: "lanes",
    label: "What happened, newest first",
    items,
    rowHeight: ROW,
    redraw,
    row: ({ at, lane, sign, look, task, text }, number) =>
      h(
        "li",
        { key: number, class: "row" },
        h("time", { datetime: at, title: exact(at) }, clockTime(at)),
        h("span", { class: `sign ${look}`, "aria-hidden": "true" }, sign),
        h("span", { class: "mute" }, nameOf(lane)),
        task ? h("a", { href: `/task/${task}`, title: text }, text) : h("span", { title: text }, text),
      ),
  });
}

const LOOKS = [
  ["held", "held"],
  ["asks", "waits for you"],
  ["review", "review"],
  ["failed", "failed"],
  ["completed", "completed"],
  ["given-back", "given back"],
  ["dot", "question"],
  ["ring", "answer"],
  ["tick", "commit"],
];

/** What the colours and shapes mean. */
export function drawLegend() {
  return h(
    "span",
    { class: "legend mute" },
    LOOKS.map(([look, word]) => h("span", { key: look }, h("span", { class: `swatch ${look}`, "aria-hidden": "true" }), word)),
    h("span", { key: "drag", class: "wide" }, "drag to zoom"),
  );
}
