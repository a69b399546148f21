// The board by phase, by agent or by worktree: one list with a heading for each group.

import { h } from "../../parts/dom.js";
import { bar, count } from "../../parts/progress.js";

/** @import { Card } from "./cards.js" */
/**
 * @typedef {{ key: string, title: string, about: string, cards: Card[], part: { done: number, total: number } | null, total: number }} Group
 * @typedef {{ group: Group } | { card: Card }} ListRow
 */

/** The states in the order of the board. */
export const STATES = ["ready", "held", "waiting", "blocked", "review", "completed"];

/** The group of held tasks of which nobody knows who or what holds them: no name can be this one. */
const UNKNOWN = "\n";

/**
 * The groups of the cards, in the order of the plan, or by name.
 * @param {"phase" | "agent" | "worktree"} by
 * @param {any} board the answer of `board`
 * @param {Card[]} cards those that pass the filter
 * @param {Map<string, string>} branches the branch that each agent works on, by its id
 * @returns {Group[]}
 */
export function groupCards(by, board, cards, branches) {
  return by === "phase" ? byPhase(board, cards) : byHolder(by, board, cards, branches);
}

/**
 * How much of the plan the board has no cards of, in the words of the command; empty if nothing.
 * @param {any} board the answer of `board`
 */
export function whatIsNotShown(board) {
  /** @type {[number, string][]} */
  const parts = board.initiatives.map((/** @type {any} */ each) => [each.more_phases, `more phases of ${each.name}`]);
  parts.push([board.more_initiatives, "more initiatives: name one with --initiative"]);
  parts.push([board.unseen_tasks, "more tasks without a phase, not shown"]);
  parts.push([board.closed_initiatives, "initiatives completed or archived"]);
  const found = parts.filter(([number]) => number).map(([number, what]) => `${number.toLocaleString("en")} ${what}`);
  return found.length ? `Not on the board: ${found.join("; ")}.` : "";
}

/**
 * How many more tasks a higher limit would bring; of completed ones, only the last are ever there.
 * @param {any} board the answer of `board`
 * @param {string[]} states
 */
export function countLoadable(board, states) {
  const open = states.filter((each) => each !== "completed");
  const phases = board.initiatives.flatMap((/** @type {any} */ each) => each.phases);
  const lanes = phases.flatMap((/** @type {any} */ phase) => open.map((each) => phase.tasks[each] ?? { total: 0, shown: [] }));
  return lanes.reduce((/** @type {number} */ sum, /** @type {any} */ lane) => sum + lane.total - lane.shown.length, 0);
}

/**
 * @param {any} board
 * @param {Card[]} cards
 * @returns {Group[]}
 */
function byPhase(board, cards) {
  return board.initiatives.flatMap((/** @type {any} */ initiative) =>
    initiative.phases.map((/** @type {any} */ phase) => {
      const totals = Object.entries(phase.tasks).map(([state, lane]) => ({ state, total: /** @type {any} */ (lane).total }));
      const total = totals.reduce((sum, each) => sum + each.total, 0);
      const done = totals.find((each) => each.state === "completed")?.total ?? 0;
      return {
        key: phase.id ?? `without ${initiative.id}`,
        title: phase.name ?? "Without a phase",
        about: [initiative.name, phase.status?.replaceAll("_", " ")].filter(Boolean).join(", "),
        cards: cards.filter((each) => each.phaseId === phase.id && each.initiative === initiative.name),
        part: { done, total },
        total,
      };
    }),
  );
}

/**
 * @param {"agent" | "worktree"} by
 * @param {any} board
 * @param {Card[]} cards
 * @param {Map<string, string>} branches
 * @returns {Group[]}
 */
function byHolder(by, board, cards, branches) {
  const all = Object.entries(board.tasks).reduce((sum, [state, count]) => sum + (state === "held" ? 0 : Number(count)), 0);
  /** @type {Map<string, Card[]>} */
  const found = new Map();
  for (const card of cards) {
    const place = by === "agent" ? card.agent : branches.get(card.agent_id ?? "");
    const name = card.state === "held" ? place ?? UNKNOWN : "";
    found.set(name, [...(found.get(name) ?? []), card]);
  }
  const names = [...found.keys()].sort((a, b) => Number(!a) - Number(!b) || a.localeCompare(b));
  return names.map((name) => {
    const inside = [...(found.get(name) ?? [])].sort((a, b) => STATES.indexOf(a.state) - STATES.indexOf(b.state));
    const title = name === UNKNOWN ? `The ${by} is not known` : name || "Nobody holds it";
    return { key: name || "nobody", title, about: "", cards: inside, part: null, total: name ? inside.length : Math.max(all, inside.length) };
  });
}

/**
 * The rows of the list; a folded group is its heading alone.
 * @param {Group[]} groups
 * @param {Set<string>} folded
 * @returns {ListRow[]}
 */
export const listRows = (groups, folded) => groups.flatMap((group) => [{ group }, ...(folded.has(group.key) ? [] : group.cards.map((card) => ({ card })))]);

/**
 * @param {Group} group
 * @param {boolean} isFolded
 * @param {(key: string) => void} fold
 */
export function drawHeading(group, isFolded, fold) {
  const hidden = group.total - group.cards.length;
  const shown = hidden === 0 ? String(group.total) : `${group.cards.length} of ${group.total.toLocaleString("en")}`;
  return h(
    "li",
    { key: `group ${group.key}`, class: "task-row group" },
    group.cards.length
      ? h("button", { key: "fold", class: "quiet fold", "aria-expanded": isFolded ? "false" : "true", onclick: () => fold(group.key) }, h("span", { "aria-hidden": "true" }, isFolded ? "▸ " : "▾ "), group.title)
      : h("span", { key: "title", class: "fold nothing" }, group.title),
    h("span", { class: "mute about-group" }, [group.about, group.part && hidden > 0 && `${hidden.toLocaleString("en")} not shown`].filter(Boolean).join(", ")),
    group.part ? bar(group.part, group.title) : h("span"),
    h("span", { class: "mute" }, group.part ? `${count(group.part)} done` : shown),
  );
}
