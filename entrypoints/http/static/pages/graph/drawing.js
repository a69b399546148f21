// Draws the tasks of a plan at the places that the server gave them; phases can be folded away.

import { h } from "../../parts/dom.js";
import { many, MARKS } from "../../parts/format.js";

/**
 * @typedef {{ id: string, name: string, phase_id: string | null, wave: number, state: string, critical: boolean, after: string[] }} GraphTask
 * @typedef {{ id: string | null, first_row: number, rows: number }} Band
 * @typedef {{ bands: Band[], spots: Record<string, [number, number]>, columns: number, rows: number }} Layout
 * @typedef {{ waves: number, tasks: GraphTask[], phases: { id: string, name: string, initiative: string, status: string }[], critical_path: string[], layout: Layout,
 *   pick_up?: { agents: number, next: string | null, steps: string[][], stuck: string[], frees: Record<string, string[]> } }} Plan
 * @typedef {{ plan: Plan, tops: number[], rowOf: Map<string, number>, hidden: Set<string>, height: number }} Shown
 * @typedef {{ lit: Set<string> | null, order: Map<string, { step: number, place: number }>, stuck: Set<string>, folded: Set<string>, focus: string,
 *   titleOf: (id: string | null) => string, fold: (id: string) => void, choose: (id: string) => void }} Options
 */

export const WIDTH = 210;
export const HEIGHT = 32;
const ACROSS = 260;
const DOWN = 42;
const HEAD = 28;
const EDGE = 16;

/**
 * Where everything stands when some phases are folded: their tasks are not drawn, and take no room.
 * @param {Plan} plan
 * @param {Set<string>} folded
 * @returns {Shown}
 */
export function foldPhases(plan, folded) {
  /** @type {number[]} */
  const tops = [];
  const rowOf = new Map();
  const hidden = new Set();
  let y = EDGE;
  for (const band of plan.layout.bands) {
    tops.push(y);
    y += HEAD;
    const isFolded = folded.has(band.id ?? "");
    for (let row = band.first_row; row < band.first_row + band.rows; row++) {
      rowOf.set(row, y);
      if (!isFolded) y += DOWN;
    }
    if (isFolded) for (const task of plan.tasks) if (task.phase_id === band.id) hidden.add(task.id);
  }
  return { plan, tops, rowOf, hidden, height: y };
}

/** @param {Shown} shown */
export const drawingSize = ({ plan, height }) => ({
  across: EDGE * 2 + Math.max(1, plan.layout.columns) * ACROSS - (ACROSS - WIDTH),
  down: height + EDGE,
});

/**
 * The upper left corner of a task's box; null if it is not drawn.
 * @param {Shown} shown
 * @param {string} id
 */
export function boxOf({ plan, rowOf, hidden }, id) {
  const spot = plan.layout.spots[id];
  if (!spot || hidden.has(id)) return null;
  return { x: EDGE + spot[0] * ACROSS, y: rowOf.get(/** @type {any} */ (spot[1])) ?? 0 };
}

/**
 * Everything in the drawing: bands, edges, then boxes above them.
 * @param {Shown} shown
 * @param {Options} options
 */
export function drawTasks(shown, options) {
  const { plan } = shown;
  const { across } = drawingSize(shown);
  const edges = plan.tasks.flatMap((task) => task.after.map((other) => ({ task, other, isCritical: plan.critical_path.includes(task.id) && plan.critical_path.includes(other) })));
  edges.sort((a, b) => Number(a.isCritical) - Number(b.isCritical)); // bold ones lie above the others
  return [
    plan.layout.bands.map((band, at) => drawBand(shown, band, at, across, options)),
    edges.map(({ task, other, isCritical }) => drawEdge(shown, task.id, other, isCritical, options)),
    plan.tasks.map((task) => drawTask(shown, task, options)),
  ];
}

/**
 * @param {Shown} shown
 * @param {Band} band
 * @param {number} at
 * @param {number} across
 * @param {Options} options
 */
function drawBand({ plan, tops }, band, at, across, { folded, fold, titleOf }) {
  const id = band.id ?? "";
  const isFolded = folded.has(id);
  const y = tops[at];
  const title = titleOf(band.id);
  const inside = plan.tasks.filter((each) => each.phase_id === band.id).length;
  return [
    at > 0 && h("line", { key: `line ${id}`, class: "band", x1: 0, x2: across, y1: y - 4, y2: y - 4 }),
    h(
      "g",
      {
        key: `phase ${id}`,
        class: "phase",
        tabindex: "0",
        role: "button",
        "aria-expanded": isFolded ? "false" : "true",
        "aria-label": `${title}, ${many(inside, "task")}`,
        onclick: () => fold(id),
        onkeydown: (/** @type {KeyboardEvent} */ event) => {
          if (event.key !== "Enter" && event.key !== " ") return;
          event.preventDefault();
          event.stopPropagation();
          fold(id);
        },
      },
      h("rect", { class: "touch", x: 4, y: y - 2, width: Math.min(across - 8, 480), height: HEAD - 4, rx: 4 }),
      h("text", { class: "fold", x: EDGE, y: y + 14 }, isFolded ? "▸" : "▾"),
      h("text", { x: EDGE + 16, y: y + 14 }, isFolded ? `${title} (${many(inside, "task")})` : title),
    ),
  ];
}

/**
 * @param {Shown} shown
 * @param {string} id
 * @param {string} other
 * @param {boolean} isCritical
 * @param {Options} options
 */
function drawEdge(shown, id, other, isCritical, { lit }) {
  const from = boxOf(shown, other);
  const to = boxOf(shown, id);
  if (!from || !to) return null;
  const [x, y, toX, toY] = [from.x + WIDTH, from.y + HEIGHT / 2, to.x, to.y + HEIGHT / 2];
  const middle = toX - (ACROSS - WIDTH) / 2;
  const isNear = lit?.has(id) && lit.has(other);
  return h("path", {
    key: `${other} ${id}`,
    class: `edge${isCritical ? " critical" : ""}${isNear ? " near" : lit ? " far" : ""}`,
    d: `M${x} ${y}H${middle}V${toY}H${toX}`,
  });
}

/**
 * @param {Shown} shown
 * @param {GraphTask} task
 * @param {Options} options
 */
function drawTask(shown, task, { lit, order, stuck, focus, choose }) {
  const place = boxOf(shown, task.id);
  if (!place) return null;
  const picked = order.get(task.id);
  const isStuck = stuck.has(task.id);
  const label = [task.name, picked && `step ${picked.step}`, task.state, task.critical && "critical", isStuck && "waits for a person"].filter(Boolean).join(", ");
  const room = WIDTH - (picked ? 76 : isStuck ? 44 : 34);
  return h(
    "a",
    {
      key: task.id,
      id: `box-${task.id}`,
      href: `/task/${task.id}`,
      "aria-label": label,
      class: [task.critical ? "critical" : "", lit ? (lit.has(task.id) ? "near" : "far") : "", task.id === focus ? "chosen" : ""].filter(Boolean).join(" ") || null,
      onclick: (/** @type {MouseEvent} */ event) => {
        if (focus === task.id) return; // the second click opens it
        event.preventDefault();
        event.stopPropagation();
        choose(task.id);
      },
    },
    h("title", null, label),
    h("rect", { class: "box", x: place.x, y: place.y, width: WIDTH, height: HEIGHT, rx: 4 }),
    h("text", { "aria-hidden": "true", class: `mark ${task.state}`, x: place.x + 8, y: place.y + 20 }, MARKS[task.state]),
    h("foreignObject", { x: place.x + 26, y: place.y, width: room, height: HEIGHT }, h("div", { "aria-hidden": "true", class: "box-name" }, task.name)),
    picked && h("text", { "aria-hidden": "true", class: "step", x: place.x + WIDTH - 8, y: place.y + 20 }, ` step ${picked.step}`),
    isStuck && h("text", { "aria-hidden": "true", class: "step person", x: place.x + WIDTH - 8, y: place.y + 20 }, "!"),
  );
}
