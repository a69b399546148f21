// The drawing of lanes: the axis, the rows that can be seen, the line of now, and what is dragged.

import { h } from "../../parts/dom.js";
import { clockTime, many, MARKS } from "../../parts/format.js";
import { barAt, describe, drawSvg, isAsking, isSame, placeBars, TRACK } from "./bars.js";
import { followBrush } from "./brush.js";
import { drawCanvas, readColours } from "./canvas.js";
import { findTicks } from "./scale.js";

/**
 * @import { Bar, Lane, Span } from "./bars.js"
 * @import { Scale } from "./scale.js"
 *
 * @typedef {{ from: number, to: number }} Part what is dragged over, in pixels
 * @typedef {object} Drawing What is drawn, and what is called.
 * @property {Lane[]} lanes
 * @property {Scale} scale
 * @property {{ top: number, height: number }} view how far the rows are scrolled
 * @property {number} names how wide the names are
 * @property {number} now
 * @property {number | null} known since when all is known, if that is in the window
 * @property {boolean} isByAgent
 * @property {number} total how many bars there are
 * @property {Span | null} chosen
 * @property {Part | null} brush
 * @property {(lane: Lane) => string} nameOf
 * @property {() => void} show
 * @property {(span: Span) => void} openSpan
 * @property {(factor: number, around: number) => void} zoomBy
 * @property {(part: Part) => void} move
 * @property {(from: number, to: number) => void} brushed
 */

/** Up to so many bars and marks are drawn as SVG. */
const MOST_SVG = 2000;
const BEYOND = 240;
const APART = 84;
const AXIS = 20;

/**
 * @param {Drawing} options
 * @returns {{ drawing: any, paint: (root: HTMLElement) => void }} `paint` draws the canvases, once they are there
 */
export function drawLanes(options) {
  const { lanes, scale, view, names, now, brush, chosen } = options;
  const isCanvas = lanes.reduce((sum, each) => sum + each.spans.length + each.marks.length, 0) > MOST_SVG;
  let height = 0;
  /** @type {{ lane: Lane, top: number, bars: Bar[] }[]} */
  const seen = [];
  for (const lane of lanes) {
    const bottom = height + lane.tracks * TRACK;
    if (bottom > view.top - BEYOND && height < view.top + view.height + BEYOND) seen.push({ lane, top: height, bars: placeBars(lane, scale, now) });
    height = bottom;
  }
  const at = scale.x(now);
  const drawing = h(
    "div",
    {
      key: "drawing",
      class: "drawing-box",
      tabindex: "0",
      role: "group",
      "aria-label": `Lanes, ${many(options.total, "bar")}`,
      "data-marks": isCanvas ? "canvas" : "svg",
      onscroll: (/** @type {Event} */ event) => {
        const box = /** @type {HTMLElement} */ (event.currentTarget);
        view.height = box.clientHeight;
        if (Math.abs(box.scrollTop - view.top) < BEYOND / 2) return;
        view.top = box.scrollTop;
        requestAnimationFrame(options.show);
      },
      onwheel: (/** @type {WheelEvent} */ event) => {
        if (!event.ctrlKey) return;
        event.preventDefault();
        const box = /** @type {HTMLElement} */ (event.currentTarget).getBoundingClientRect();
        options.zoomBy(event.deltaY < 0 ? 0.7 : 1.4, scale.moment(event.clientX - box.left - names));
      },
    },
    drawAxis(options),
    h("ul", { class: "lane-rows", style: { height: `${height}px` }, "aria-label": "Lanes" }, seen.map((each) => drawRow(each, options, isCanvas))),
    options.known !== null && h("div", { key: "cut", class: "unknown", style: { left: `${names}px`, width: `${Math.max(0, Math.min(scale.width, scale.x(options.known)))}px` } }),
    at >= 0 && at <= scale.width + 1 && h("div", { key: "now", class: "now-line", style: { left: `${names + Math.min(at, scale.width - 1)}px`, height: `${height + AXIS}px` } }),
    brush && h("div", { key: "brush", class: "brush", style: { left: `${names + Math.min(brush.from, brush.to)}px`, width: `${Math.abs(brush.to - brush.from)}px`, height: `${height + AXIS}px` } }),
  );
  /** @param {HTMLElement} root */
  const paint = (root) => {
    if (!isCanvas) return;
    const canvases = root.querySelectorAll("canvas");
    const colours = readColours(root);
    seen.forEach(({ lane, bars }, number) => drawCanvas(canvases[number], lane, bars, scale, { chosen, colours }));
  };
  return { drawing, paint };
}

/** @param {Drawing} options */
function drawAxis({ scale, names }) {
  const begin = new Date(scale.pieces[0].since).toISOString();
  return h(
    "div",
    { class: "axis", "aria-hidden": "true" },
    h("span", { class: "axis-begin", style: { width: `${names}px` } }, clockTime(begin)),
    h(
      "svg",
      { width: scale.width, height: AXIS },
      findTicks(scale, APART).map((each) => h("g", { key: each.moment }, h("line", { x1: each.x, x2: each.x, y1: 14, y2: AXIS }), h("text", { x: each.x + 3, y: 13 }, each.text))),
    ),
  );
}

/**
 * @param {{ lane: Lane, top: number, bars: Bar[] }} row
 * @param {Drawing} options
 * @param {boolean} isCanvas
 */
function drawRow({ lane, top, bars }, options, isCanvas) {
  const { scale, names, now, chosen } = options;
  const name = options.nameOf(lane);
  const isChosen = lane.spans.some((each) => isSame(each, chosen));
  const status = lane.status ?? "";
  const height = `${lane.tracks * TRACK}px`;
  /** @param {PointerEvent} event */
  const placeOf = (event) => {
    const box = /** @type {HTMLElement} */ (event.currentTarget).getBoundingClientRect();
    return { x: event.clientX - box.left - names, y: event.clientY - box.top };
  };
  return h(
    "li",
    {
      key: `${lane.id}`,
      class: `lane${isAsking(lane) ? " asks" : ""}${isChosen ? " chosen" : ""}`,
      style: { top: `${top}px`, height },
      onpointerdown: (/** @type {PointerEvent} */ event) =>
        followBrush(event, { x: placeOf(event).x, width: scale.width, move: (from, to) => options.move({ from, to }), end: options.brushed }),
      onclick: (/** @type {PointerEvent} */ event) => {
        const { x, y } = placeOf(event);
        const bar = x >= 0 && !options.brush ? barAt(bars, x, y) : undefined;
        if (bar) options.openSpan(bar.span);
      },
      onpointermove: isCanvas
        ? (/** @type {PointerEvent} */ event) => {
            const { x, y } = placeOf(event);
            const bar = barAt(bars, x, y);
            const canvas = /** @type {HTMLElement} */ (event.currentTarget).querySelector("canvas");
            if (canvas) canvas.title = bar ? describe(bar.span, now) : "";
          }
        : null,
    },
    h(
      "span",
      { class: "lane-name", style: { width: `${names}px` }, title: lane.gone ? `${name}, removed` : name },
      options.isByAgent && h("span", { class: `mark ${status}`, "aria-hidden": "true" }, MARKS[status] ?? ""),
      options.isByAgent && lane.id && !lane.gone ? h("a", { href: `/agents/${lane.id}` }, name) : h("span", { class: lane.gone || !lane.id ? "mute" : null }, name),
      lane.gone && h("span", { class: "mute" }, " gone"),
      h("span", { class: "heard" }, `: ${lane.spans.slice(-3).map((each) => describe(each, now)).join(". ") || "nothing"}`),
    ),
    isCanvas ? h("canvas", { key: "bars", class: "bars", "aria-hidden": "true", style: { width: `${scale.width}px`, height } }) : drawSvg(lane, bars, scale, now, chosen),
  );
}
