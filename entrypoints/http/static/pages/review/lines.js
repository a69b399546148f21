// Draws the lines of a diff, unified or side by side, with numbers that can be chosen.

import { h } from "../../parts/dom.js";
import { reveal, revealText } from "./names.js";
import { isWithin, numberOn, sideOf } from "./rows.js";

/** @import { Hunk, Line, Span } from "./rows.js" */

const SIGNS = /** @type {Record<string, string>} */ ({ added: "+", removed: "−", context: " " });
const LABEL = 200;
export const LINE_HEIGHT = 20;
const CHARACTER = 7.3;

/**
 * @typedef {object} LineEvents What a person does with the numbers of lines.
 * @property {(line: Line, event: PointerEvent) => void} press
 * @property {(line: Line, event: PointerEvent) => void} over
 * @property {(line: Line) => void} click without a pointer
 */

/**
 * How high a line will be, in pixels, if it is broken where it meets the edge.
 * @param {string} text
 * @param {number} room
 */
export function guessHeight(text, room) {
  if (room <= 0) return LINE_HEIGHT;
  return Math.max(1, Math.ceil((text.length * CHARACTER) / Math.max(40, room))) * LINE_HEIGHT;
}

/** @param {Line} line */
function words(line) {
  const isReturn = line.text.endsWith("\r");
  const text = isReturn ? line.text.slice(0, -1) : line.text;
  return [
    reveal(text),
    isReturn && line.type !== "context" && h("span", { class: "odd" }, "CR"),
    line.more > 0 && h("span", { class: "mute" }, ` … and ${line.more.toLocaleString("en")} more characters`),
    line.is_open && h("span", { class: "mute" }, " no line feed at the end"),
  ];
}

/**
 * @param {Line} line
 * @param {string} side
 * @param {LineEvents} events
 */
function number(line, side, events) {
  const shown = numberOn(line, side);
  if (shown === null) return h("span", { class: "no" });
  const kind = line.type === "context" ? "" : `, ${line.type}`;
  return h(
    "button",
    {
      class: "no",
      tabindex: "-1",
      "aria-label": `Line ${shown}${kind}: ${revealText(line.text.slice(0, LABEL))}`,
      onpointerdown: (/** @type {PointerEvent} */ event) => events.press(line, event),
      onclick: (/** @type {MouseEvent} */ event) => event.detail === 0 && events.click(line),
    },
    shown,
  );
}

/**
 * @param {Line} line
 * @param {{ at: number, key: string, span: Span | null, isChosen: boolean, events: LineEvents }} options
 */
export function drawLine(line, { at, key, span, isChosen, events }) {
  return h(
    "div",
    {
      key,
      "data-at": String(at),
      class: `line ${line.type}${isWithin(line, span) ? " within" : ""}${isChosen ? " chosen" : ""}`,
      onpointerover: (/** @type {PointerEvent} */ event) => events.over(line, event),
    },
    number(line, "old", events),
    number(line, "new", events),
    h("span", { class: "sign", "aria-hidden": "true" }, SIGNS[line.type]),
    h("code", null, words(line)),
  );
}

/**
 * @param {Line | null} left
 * @param {Line | null} right
 * @param {{ at: number, key: string, span: Span | null, isChosen: boolean, events: LineEvents }} options
 */
export function drawPair(left, right, { at, key, span, isChosen, events }) {
  /** @param {Line | null} line @param {string} side */
  const half = (line, side) =>
    line
      ? h(
          "div",
          {
            class: `half ${line.type}${isWithin(line, span) && (side === "new" || sideOf(line) === "old") ? " within" : ""}`,
            onpointerover: (/** @type {PointerEvent} */ event) => events.over(line, event),
          },
          number(line, side, events),
          h("span", { class: "sign", "aria-hidden": "true" }, SIGNS[line.type]),
          h("code", null, words(line)),
        )
      : h("div", { class: "half none" });
  return h("div", { key, "data-at": String(at), class: `pair${isChosen ? " chosen" : ""}` }, half(left, "old"), half(right, "new"));
}

/**
 * @param {Hunk} hunk
 * @param {{ at: number, key: string }} options
 */
export function drawHunk(hunk, { at, key }) {
  const last = hunk.new_start + Math.max(0, hunk.new_count - 1);
  return h(
    "div",
    { key, "data-at": String(at), class: "hunk" },
    h("span", null, hunk.new_count ? `lines ${hunk.new_start}–${last}` : `before line ${hunk.new_start + 1}`),
    hunk.heading && h("code", null, reveal(hunk.heading)),
  );
}
