// What a card says, as a card in a column and as a row of a grouped list.

import { h } from "../../parts/dom.js";
import { leaseLeft, MARKS, short } from "../../parts/format.js";
import { clock, isPast } from "../../parts/moment.js";

/**
 * @typedef {{ id: string, name: string, state: string, priority: string, critical: boolean, agent_id: string | null, agent: string | null,
 *   waits_for_you: boolean, for_review: boolean, lease_until: string | null, waits_for: { kind: string, id: string, name: string, status: string }[], waits_for_more: number,
 *   phase: string | null, phaseId: string | null, initiative: string | null }} Card
 * @typedef {object} CardOptions What a card is drawn with, and what it tells.
 * @property {string} by what the cards are grouped by
 * @property {string} chosen
 * @property {Set<string>} selected
 * @property {string} renaming the id of the card whose name is being changed
 * @property {(id: string) => void} choose
 * @property {(id: string) => void} select
 * @property {(id: string) => void} startRename
 * @property {(card: Card, name: string | null) => void} endRename
 * @property {(card: Card, event: DragEvent) => void} drag
 * @property {() => void} drop
 */

/**
 * Why a card is where it is: who holds it, unless that was said, or what it waits for.
 * @param {Card} card
 * @param {boolean} [isNamed]
 */
export function why(card, isNamed = false) {
  if (card.state === "held") {
    const who = isNamed ? "" : card.agent ?? "nobody known";
    const left = asks(card) && !isOver(card) ? "" : card.lease_until ? leaseLeft(card.lease_until) : isPast() ? "lease not known" : "";
    const what = [who, card.for_review && "reviews it", asks(card) && "waits for you"].filter(Boolean).join(" ");
    return [what, left].filter(Boolean).join(", ");
  }
  if (!card.waits_for.length) return "";
  const tasks = card.waits_for.filter((each) => each.kind === "task");
  const named = tasks.length
    ? tasks.map((each) => each.name)
    : card.waits_for.map((each) => (each.id === card.phaseId ? `its phase (${each.status.replaceAll("_", " ")})` : `${each.kind} ${each.name} (${each.status.replaceAll("_", " ")})`));
  const more = named.length - 2 + card.waits_for_more;
  return `for ${named.slice(0, 2).join(", ")}${more > 0 ? ` +${more}` : ""}`;
}

/** Whether its holder waits for a person. @param {Card} card */
const asks = (card) => card.state === "held" && card.waits_for_you;

/** @param {Card} card */
const isOver = (card) => card.state === "held" && card.lease_until !== null && Date.parse(card.lease_until) < clock();

/**
 * @param {Card} card
 * @param {CardOptions} options
 */
function classes(card, { chosen, selected }) {
  return [card.state, card.id === chosen && "chosen", selected.has(card.id) && "selected", isOver(card) && "over", asks(card) && "asks"].filter(Boolean).join(" ");
}

/**
 * What a card does when it is pointed at, the same in both forms.
 * @param {Card} card
 * @param {CardOptions} options
 */
const actions = (card, options) => ({
  "data-id": card.id,
  onfocusin: () => options.choose(card.id),
  onclick: (/** @type {MouseEvent} */ event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    options.select(card.id);
  },
  ondblclick: (/** @type {MouseEvent} */ event) => {
    if (/** @type {Element} */ (event.target).closest("a, input") || isPast()) return;
    options.startRename(card.id);
  },
});

/**
 * @param {Card} card
 * @param {CardOptions} options
 */
function nameOf(card, options) {
  if (options.renaming !== card.id) return h("a", { href: `/task/${card.id}`, title: card.name, draggable: "false" }, card.name);
  let isEnded = false;
  /** @param {Event} event @param {boolean} keeps */
  const end = (event, keeps) => {
    if (isEnded) return;
    isEnded = true;
    options.endRename(card, keeps ? /** @type {HTMLInputElement} */ (event.currentTarget).value : null);
  };
  return h("input", {
    key: "rename",
    class: "rename",
    value: card.name,
    "aria-label": `New name of ${card.name}`,
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.preventDefault();
      event.stopPropagation();
      end(event, event.key === "Enter");
    },
    onblur: (/** @type {FocusEvent} */ event) => end(event, true),
  });
}

/** @param {Card} card @param {CardOptions} options */
const mark = (card, { selected }) =>
  selected.has(card.id)
    ? h("span", { class: "mark picked", title: "selected" }, "✓")
    : asks(card)
      ? h("span", { class: "mark waiting_for_input", "aria-hidden": "true" }, MARKS.waiting_for_input)
      : h("span", { class: `mark ${card.state}`, "aria-hidden": "true" }, MARKS[card.state]);

/**
 * @param {Card} card
 * @param {CardOptions} options
 */
export function drawCard(card, options) {
  const reason = why(card);
  return h(
    "li",
    {
      key: card.id,
      class: `card ${classes(card, options)}`,
      draggable: options.renaming === card.id ? null : "true",
      ondragstart: (/** @type {DragEvent} */ event) => options.drag(card, event),
      ondragend: options.drop,
      ...actions(card, options),
    },
    h("div", { class: "line" }, mark(card, options), nameOf(card, options), card.critical && h("span", { class: "critical", title: "on the critical path" }, "★", h("span", { class: "unseen" }, " critical"))),
    reason && h("p", { class: "why mute", title: reason }, reason),
    h("p", { class: "facts mute" }, h("code", null, short(card.id)), card.phase && h("span", { title: card.initiative }, card.phase), card.priority !== "medium" && h("span", null, card.priority)),
  );
}

/**
 * @param {Card} card
 * @param {CardOptions} options
 */
export function drawRow(card, options) {
  return h(
    "li",
    { key: card.id, class: `task-row card-row ${classes(card, options)}`, ...actions(card, options) },
    mark(card, options),
    h("span", { class: "row-name" }, nameOf(card, options), card.critical && h("span", { class: "critical", title: "on the critical path" }, " ★", h("span", { class: "unseen" }, " critical"))),
    h("span", { class: "why mute" }, why(card, options.by === "agent")),
    h("span", { class: "mute state-word" }, card.priority === "medium" ? card.state : `${card.state}, ${card.priority}`),
  );
}
