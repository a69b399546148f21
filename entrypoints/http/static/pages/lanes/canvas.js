// Draws the bars of one lane on a canvas, where there are too many for SVG.

import { BAR, isSame, label, THIN, TRACK } from "./bars.js";

/**
 * @import { Bar, Lane, Span } from "./bars.js"
 * @import { Scale } from "./scale.js"
 */

const LOOKS = ["held", "completed", "failed", "review", "asks", "asked"];
const NAMES = [...LOOKS, ...LOOKS.map((each) => `${each}-text`), "given-back", "gap", "mark", "chosen"];

/**
 * The colours of bars, as the style of the page has them now.
 * @param {HTMLElement} root
 * @returns {Record<string, string>}
 */
export function readColours(root) {
  const probe = document.createElement("span");
  probe.hidden = true;
  root.append(probe);
  /** @type {Record<string, string>} */
  const found = {};
  for (const name of NAMES) {
    probe.style.setProperty("color", `var(--bar-${name})`);
    found[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return found;
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {Lane} lane
 * @param {Bar[]} bars
 * @param {Scale} scale
 * @param {{ chosen: Span | null, colours: Record<string, string> }} options
 */
export function drawCanvas(canvas, lane, bars, scale, { chosen, colours }) {
  const dense = window.devicePixelRatio || 1;
  const height = lane.tracks * TRACK;
  canvas.width = Math.round(scale.width * dense);
  canvas.height = Math.round(height * dense);
  const pen = canvas.getContext("2d");
  if (!pen) return;
  pen.scale(dense, dense);
  pen.font = `12px ${getComputedStyle(canvas).fontFamily}`;
  pen.fillStyle = colours.gap;
  for (const each of scale.pieces) if (each.isGap) pen.fillRect(each.left, 0, each.right - each.left, height);
  for (const bar of bars) {
    const name = bar.look === "held over" ? "held" : bar.look;
    const isThin = bar.look === "given-back";
    pen.fillStyle = colours[name];
    pen.fillRect(bar.left, bar.top + (isThin ? (BAR - THIN) / 2 : 0), bar.right - bar.left, isThin ? THIN : BAR);
    if (isSame(bar.span, chosen)) {
      pen.strokeStyle = colours.chosen;
      pen.lineWidth = 2;
      pen.strokeRect(bar.left, bar.top, bar.right - bar.left, BAR);
    }
    const text = label(bar);
    if (!text) continue;
    pen.fillStyle = colours[`${name}-text`];
    pen.fillText(text, bar.left + 4, bar.top + 12);
  }
  for (const mark of lane.marks) drawMark(pen, mark.kind, scale.x(Date.parse(mark.at)), colours);
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {string} kind
 * @param {number} x
 * @param {Record<string, string>} colours
 */
function drawMark(pen, kind, x, colours) {
  pen.fillStyle = pen.strokeStyle = colours[kind === "asked" ? "asks" : "mark"];
  if (kind === "commit") {
    pen.fillRect(x - 0.75, TRACK - 7, 1.5, 7);
    return;
  }
  pen.beginPath();
  pen.arc(x, 4, 3, 0, 2 * Math.PI);
  if (kind === "asked") pen.fill();
  else pen.stroke();
}
