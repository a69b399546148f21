// The bars and marks of one lane: what they look like, where they stand, and their drawing as SVG.

import { h } from "../../parts/dom.js";
import { clockTime, duration, MARKS, short } from "../../parts/format.js";

/**
 * @import { Scale } from "./scale.js"
 *
 * @typedef {{ task_id?: string, task?: string, agent_id?: string, agent?: string, state: string, since: string, until?: string,
 *   claimed_at: string, end?: string, track: number, over: boolean }} Span
 * @typedef {{ kind: string, at: string, agent_id?: string, agent?: string, task_id?: string, subject: string, text: string }} Mark
 * @typedef {{ id?: string, name?: string, status?: string, gone: boolean, tracks: number, spans: Span[], marks: Mark[], asks?: boolean }} Lane
 * @typedef {{ left: number, right: number, top: number, look: string, span: Span }} Bar
 */

export const TRACK = 24;
export const BAR = 16;
const EDGE = (TRACK - BAR) / 2;
const LETTER = 7;
const ROOM = 40;
export const THIN = 4;

const ENDS = /** @type {Record<string, string>} */ ({
  completed: "completed",
  handed_in: "handed in for review",
  failed: "failed",
  released: "given back",
  taken_over: "taken over by another",
  removed: "the task was removed",
});

const SIGNS = /** @type {Record<string, string>} */ ({ asks: "!", asked: "!", failed: "■", completed: "●", review: "◇", "given-back": "↩" });

/**
 * What a bar looks like: what its agent did, or how its claim ended.
 * @param {Span} span
 */
export function lookOf(span) {
  if (span.state === "waiting_for_input") return span.until ? "asked" : "asks";
  if (span.state === "review") return "review";
  if (!span.end) return span.over ? "held over" : "held";
  if (span.end === "completed" || span.end === "handed_in") return "completed";
  return span.end === "failed" ? "failed" : "given-back";
}

/**
 * A span in words.
 * @param {Span} span
 * @param {number} now
 */
export function describe(span, now) {
  const who = span.agent ?? (span.agent_id ? short(span.agent_id) : "somebody");
  const verb = { waiting_for_input: "waited for a person", review: "reviewed" }[span.state] ?? "held";
  const what = span.task ?? (span.task_id ? `task ${short(span.task_id)}` : "");
  const about = what && span.state === "waiting_for_input" ? ` with ${what}` : what ? ` ${what}` : "";
  const until = span.until ? Date.parse(span.until) : now;
  const times = `${clockTime(span.since, true)} – ${span.until ? clockTime(span.until, true) : "now"}, ${duration((until - Date.parse(span.since)) / 1000)}`;
  const end = span.end ? `; ${ENDS[span.end] ?? span.end}` : span.over ? "; its lease is over" : "";
  return `${who} ${verb}${about}, ${times}${end}`;
}

/** @param {Mark} mark */
export function describeMark(mark) {
  const who = mark.agent ?? "somebody";
  const verb = { asked: "asked", answered: "got an answer", commit: "committed" }[mark.kind] ?? mark.kind;
  return `${who} ${verb}, ${clockTime(mark.at, true)}: ${mark.text}`;
}

/**
 * The mark of a bar's state: never colour alone.
 * @param {Span} span
 */
export function markOf(span) {
  return SIGNS[lookOf(span)] ?? MARKS.held;
}

/**
 * Where the bars of a lane stand.
 * @param {Lane} lane
 * @param {Scale} scale
 * @param {number} now
 * @returns {Bar[]}
 */
export function placeBars(lane, scale, now) {
  const found = [];
  for (const span of lane.spans) {
    const left = Math.max(0, scale.x(Date.parse(span.since)));
    const right = Math.min(scale.width, scale.x(span.until ? Date.parse(span.until) : now));
    if (right < 0 || left > scale.width) continue;
    found.push({ left, right: Math.max(right, left + 2), top: span.track * TRACK + EDGE, look: lookOf(span), span });
  }
  return found;
}

/**
 * What is written in a bar: as much as there is room for.
 * @param {Bar} bar
 */
export function label({ left, right, span, look }) {
  const room = right - left - 8;
  if (room < ROOM || look === "given-back") return "";
  const text = `${markOf(span)} ${span.task ?? (span.task_id ? short(span.task_id) : "waits for a person")}`;
  const letters = Math.floor(room / LETTER);
  return text.length > letters ? `${text.slice(0, letters - 1)}…` : text;
}

/**
 * @param {Lane} lane
 * @param {Bar[]} bars
 * @param {Scale} scale
 * @param {number} now
 * @param {Span | null} chosen
 */
export function drawSvg(lane, bars, scale, now, chosen) {
  return h(
    "svg",
    { key: "bars", class: "bars", width: scale.width, height: lane.tracks * TRACK, "aria-hidden": "true" },
    scale.pieces.filter((each) => each.isGap).map((each) => h("rect", { class: "gap", x: each.left, y: 0, width: each.right - each.left, height: lane.tracks * TRACK })),
    bars.map((bar) => {
      const isThin = bar.look === "given-back";
      const text = label(bar);
      return h(
        "g",
        { key: `${bar.span.task_id} ${bar.span.since} ${bar.span.track}`, class: `bar ${bar.look}${isSame(bar.span, chosen) ? " chosen" : ""}`, "data-task": bar.span.task_id ?? null },
        h("title", null, describe(bar.span, now)),
        h("rect", { x: bar.left, y: bar.top + (isThin ? (BAR - THIN) / 2 : 0), width: bar.right - bar.left, height: isThin ? THIN : BAR, rx: isThin ? 2 : 3 }),
        text && h("text", { x: bar.left + 4, y: bar.top + 12 }, text),
      );
    }),
    lane.marks.map((mark, at) => {
      const x = scale.x(Date.parse(mark.at));
      if (x < 0 || x > scale.width) return null;
      const shape = mark.kind === "commit" ? h("line", { x1: x, x2: x, y1: TRACK - 7, y2: TRACK }) : h("circle", { cx: x, cy: 4, r: 3 });
      return h("g", { key: `${mark.subject} ${mark.kind} ${at}`, class: `mark ${mark.kind}` }, h("title", null, describeMark(mark)), shape);
    }),
  );
}

/**
 * The bar at a place of a lane.
 * @param {Bar[]} bars
 * @param {number} x
 * @param {number} y
 */
export const barAt = (bars, x, y) =>
  bars.findLast((each) => x >= each.left - 1 && x <= each.right + 1 && y >= each.top - EDGE && y < each.top + BAR + EDGE);

/**
 * @param {Span} span
 * @param {Span | null} other
 */
export const isSame = (span, other) =>
  other !== null && span.since === other.since && span.task_id === other.task_id && span.agent_id === other.agent_id;

/**
 * The lanes as they are shown, with what is known now of their bars: none comes, goes or moves.
 * @param {Lane[]} shown
 * @param {Lane[]} now
 * @returns {Lane[]}
 */
export function keepPlaces(shown, now) {
  const known = new Map(now.map((each) => [each.id, each]));
  return shown.map((lane) => {
    const found = known.get(lane.id);
    const spans = lane.spans.map((each) => ({ ...(found?.spans.find((other) => isSame(other, each)) ?? each), track: each.track }));
    return { ...lane, status: found?.status, asks: found ? isAsking(found) : false, spans };
  });
}

/** Whether its agent waits for a person. @param {Lane} lane */
export const isAsking = (lane) => lane.asks ?? lane.spans.some((each) => lookOf(each) === "asks");

/**
 * How many bars and marks are in the lanes now and are not shown.
 * @param {Lane[]} shown
 * @param {Lane[]} now
 */
export function countNew(shown, now) {
  const known = new Set(shown.flatMap(idsOf));
  return now.flatMap(idsOf).filter((each) => !known.has(each)).length;
}

/** @param {Lane} lane */
const idsOf = ({ spans, marks }) => [
  ...spans.map((each) => `${each.since} ${each.task_id} ${each.agent_id}`),
  ...marks.map((each) => `${each.at} ${each.kind} ${each.subject}`),
];
