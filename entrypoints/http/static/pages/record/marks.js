// The small pictures of the record. Each has its numbers in words, for those who do not see it.

import { h } from "../../parts/dom.js";
import { GRADES } from "./grading.js";

/** @typedef {{ low: number, estimate: number, high: number }} Interval */

const WORST = -1;
const BEST = 5;

/**
 * What all intervals are drawn on: the grades, and more where bugs have cost more.
 * @param {{ merit_interval: Interval }[]} setups
 */
export function scaleOf(setups) {
  return {
    low: Math.min(WORST, ...setups.map((each) => each.merit_interval.low)),
    high: Math.max(BEST, ...setups.map((each) => each.merit_interval.high)),
  };
}

/**
 * A dot and the bar that the true value is in.
 * @param {Interval} merit
 * @param {{ low: number, high: number }} scale
 * @param {boolean} isEnough
 */
export function drawInterval(merit, scale, isEnough) {
  /** @param {number} value */
  const at = (value) => (100 * (value - scale.low)) / (scale.high - scale.low);
  const words = `merit ${merit.estimate.toFixed(1)}, between ${merit.low.toFixed(1)} and ${merit.high.toFixed(1)}${isEnough ? "" : ", too little to tell"}`;
  return h(
    "span",
    { class: "axis", role: "img", "aria-label": words, title: words },
    [WORST, 1, 2, BEST].map((each) => h("span", { key: `line ${each}`, class: "line", style: { left: `${at(each)}%` } })),
    h("span", { class: "range", style: { left: `${at(merit.low)}%`, width: `${at(merit.high) - at(merit.low)}%` } }),
    h("span", { class: "dot", style: { left: `${at(merit.estimate)}%` } }),
  );
}

/**
 * How often each grade was given, as parts of a bar.
 * @param {Record<string, number>} mix
 */
export function drawMix(mix) {
  const total = GRADES.reduce((sum, each) => sum + mix[each], 0);
  const words = GRADES.filter((each) => mix[each]).map((each) => `${mix[each]} ${each}`).join(", ") || "none";
  return h(
    "span",
    { class: "mix" },
    h(
      "span",
      { class: "bar", "aria-hidden": "true", title: words },
      GRADES.filter((each) => mix[each]).map((each) => h("span", { key: each, class: each, style: { width: `${(100 * mix[each]) / total}%` } })),
    ),
    h("span", { class: "mute" }, words),
  );
}

/**
 * The mean grade of each week, as columns; a week without grades is a point.
 * @param {{ begin: string, observations: number, grades: number, bugs: number, mean_grade: number | null }[]} weeks
 */
export function drawWeeks(weeks) {
  const known = weeks.filter((each) => each.mean_grade !== null);
  const words = known.map((each) => `${each.begin}: ${each.mean_grade?.toFixed(1)}`).join(", ");
  return h(
    "span",
    { class: "weeks", role: "img", "aria-label": words ? `mean grade by week, ${words}` : `no grades in ${weeks.length} weeks` },
    weeks.map((each) => {
      const share = each.mean_grade === null ? 0 : (each.mean_grade - WORST) / (BEST - WORST);
      const told = each.mean_grade === null ? "no grades" : `mean grade ${each.mean_grade.toFixed(1)} of ${each.grades}`;
      const title = `week of ${each.begin}: ${each.observations} seen, ${told}, ${each.bugs} with a bug`;
      return h("span", { key: each.begin, title, class: each.mean_grade === null ? "week none" : "week", style: { height: `${each.mean_grade === null ? 2 : Math.max(3, Math.round(share * 24))}px` } });
    }),
  );
}
