// How far a plan is, as bars, a small drawing and sentences; all numbers are the server's.

import { draw, h } from "./dom.js";
import { clockTime, duration, exact, many } from "./format.js";
import { clock } from "./moment.js";

/**
 * @typedef {{ at: string, done: number, total: number }} Point
 * @typedef {{ id: string | null, name: string | null, status: string | null, initiative_id: string | null, initiative: string | null, done: number, total: number }} PhaseProgress
 * @typedef {{ now: Point, phases: PhaseProgress[], completed: Record<string, number | null>, forecast: { likely: string, late: string } | null, history: Point[] }} Progress
 */

const WIDTH = 300;
const HEIGHT = 60;
/** How many phases of an initiative are shown, those that are not done first. */
const PHASES_SHOWN = 50;
/** The initiatives that are open: only of those, the phases are drawn. @type {Set<string>} */
const opened = new Set();

/** @param {{ done: number, total: number }} part */
export const count = ({ done, total }) => `${done.toLocaleString("en")} of ${total.toLocaleString("en")}`;

/**
 * A bar with its numbers in words. It is full only when all is done, and not empty once something is.
 * @param {{ done: number, total: number }} part
 * @param {string} label what it is about
 */
export function bar(part, label) {
  const share = part.total ? part.done / part.total : 0;
  const shown = part.done === part.total ? share : Math.min(0.97, Math.max(part.done ? 0.03 : 0, share));
  return h(
    "span",
    { class: "bar", role: "img", "aria-label": `${label}: ${count(part)} done`, title: `${count(part)} done, ${Math.floor(share * 100)}%` },
    h("span", { style: { width: `${shown * 100}%` } }),
  );
}

/**
 * When the rest may be done, in a sentence; honest when nobody can say.
 * @param {Progress} progress
 */
export function forecastText({ now, forecast }) {
  if (now.done === now.total) return "Everything is done.";
  if (!forecast) return "When the rest is done is not known yet: too few tasks were completed lately.";
  const late = duration((Date.parse(forecast.late) - clock()) / 1000);
  return `If it goes on as before, done by ${clockTime(forecast.likely)} (50%) or ${clockTime(forecast.late)} (90%, in ${late}).`;
}

/** @param {Progress} progress */
export function forecastTitle({ forecast }) {
  return forecast ? `50%: ${exact(forecast.likely)}, 90%: ${exact(forecast.late)}` : null;
}

/** @param {Progress} progress */
export function paceText({ completed }) {
  const all = Object.entries(completed).filter(([, number]) => number !== null);
  // A longer time in which nothing more was completed tells nothing more.
  const known = all.filter(([, number], at) => number !== all[at - 1]?.[1]);
  if (!known.length) return "The journal does not reach back an hour.";
  return `Completed: ${known.map(([span, number]) => `${Number(number).toLocaleString("en")} in the last ${span}`).join(", ")}.`;
}

/**
 * All tasks and those that were done, over time, and how many were completed in each step.
 * @param {Progress} progress
 */
export function burnUp({ history }) {
  if (history.length < 2) return null;
  const first = history[0];
  const last = history[history.length - 1];
  const most = Math.max(1, ...history.map((each) => each.total));
  const steps = history.slice(1).map((each, at) => Math.max(0, each.done - history[at].done));
  const fastest = Math.max(1, ...steps);
  /** @param {number} at */
  const x = (at) => (at / (history.length - 1)) * WIDTH;
  /** @param {number} number */
  const y = (number) => HEIGHT - (number / most) * (HEIGHT - 2);
  /** @param {"done" | "total"} name */
  const line = (name) => history.map((each, at) => `${at ? "L" : "M"}${x(at).toFixed(1)} ${y(each[name]).toFixed(1)}`).join("");
  const step = WIDTH / (history.length - 1);
  return h(
    "figure",
    { key: "burn-up", class: "burn-up" },
    h(
      "svg",
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": `From ${clockTime(first.at)} to ${clockTime(last.at)}: from ${count(first)} to ${count(last)} tasks done` },
      steps.map((each, at) => h("rect", { key: `pace ${at}`, class: "pace", x: x(at) + 1, width: step - 2, y: HEIGHT - (each / fastest) * (HEIGHT / 3), height: (each / fastest) * (HEIGHT / 3) })),
      h("path", { class: "area", d: `${line("done")}L${WIDTH} ${HEIGHT}L0 ${HEIGHT}Z` }),
      h("path", { class: "all", d: line("total") }),
      h("path", { class: "done", d: line("done") }),
      history.map((each, at) =>
        h(
          "rect",
          { key: `at ${at}`, class: "spot", x: x(at) - step / 2, width: step, y: 0, height: HEIGHT },
          h("title", null, `${exact(each.at)}: ${count(each)} done${at ? `, ${steps[at - 1]} in this step` : ""}`),
        ),
      ),
    ),
    h("figcaption", { class: "mute" }, h("span", null, clockTime(first.at)), h("span", null, `done, and all ${many(last.total, "task")}`), h("span", null, clockTime(last.at))),
  );
}

/**
 * The initiatives with their phases, each with a bar.
 * @param {Progress} progress
 */
export function initiativeBars({ phases }) {
  /** @type {Map<string, { name: string, parts: PhaseProgress[] }>} */
  const groups = new Map();
  for (const each of phases) {
    const id = each.initiative_id ?? "";
    const group = groups.get(id) ?? { name: each.initiative ?? "Without a phase", parts: [] };
    group.parts.push(each);
    groups.set(id, group);
  }
  return h(
    "ul",
    { key: "initiatives", class: "initiatives" },
    [...groups].map(([id, { name, parts }]) => {
      const whole = { done: sum(parts, "done"), total: sum(parts, "total") };
      return h(
        "li",
        { key: id },
        h(
          "details",
          {
            ontoggle: (/** @type {Event} */ event) => {
              const box = /** @type {HTMLDetailsElement} */ (event.currentTarget);
              if (box.open) opened.add(id);
              else opened.delete(id);
              draw(/** @type {HTMLElement} */ (box.querySelector("ul")), box.open ? phaseBars(parts) : []);
            },
          },
          h("summary", { class: "progress-row" }, h("span", { class: "progress-name", title: name }, name), bar(whole, name), h("span", { class: "mute" }, count(whole))),
          h("ul", null, opened.has(id) && phaseBars(parts)),
        ),
      );
    }),
  );
}

/** @param {PhaseProgress[]} parts */
function phaseBars(parts) {
  const shown = parts.length > PHASES_SHOWN ? parts.filter((each) => each.done < each.total).slice(0, PHASES_SHOWN) : parts;
  const rest = parts.length - shown.length;
  return [
    ...shown.map((each) =>
      h("li", { key: each.id ?? "", class: "progress-row" }, h("span", { class: "progress-name", title: each.status?.replaceAll("_", " ") }, each.name ?? "without a phase"), bar(each, each.name ?? "without a phase"), h("span", { class: "mute" }, count(each))),
    ),
    rest > 0 && h("li", { key: "more", class: "mute" }, `and ${many(rest, "more phase")}`),
  ];
}

/**
 * @param {PhaseProgress[]} parts
 * @param {"done" | "total"} name
 */
const sum = (parts, name) => parts.reduce((total, each) => total + each[name], 0);
