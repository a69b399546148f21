// What waits for the person, answered in place: entries with their buttons, texts and keys. The
// server says what waits and which operations answer it; a refusal stays where it was given.

import { h, withCode } from "./dom.js";
import { ago, exact, short } from "./format.js";
import { isPast } from "./moment.js";
import { act } from "./notices.js";

/**
 * @typedef {{ label: string, method: string, params: Record<string, any>, text: string | null }} Action
 * @typedef {{ kind: string, subject: string, since: string, title: string, text: string, agent: string | null, task_id: string | null, task: string | null, actions: Action[] }} Entry
 */

const SHOWN = 50;

/**
 * @param {{ root: HTMLElement, show: () => void, refresh: () => Promise<void> }} page
 */
export function createQueue({ root, show, refresh }) {
  /** @type {Entry[]} */
  let entries = [];
  let count = 0;
  let chosen = "";
  /** The refusals of answers, by what was answered. @type {Map<string, string>} */
  const refusals = new Map();
  /** What was answered and is on its way. @type {Set<string>} */
  const sending = new Set();
  /** What is being written. @type {Map<string, string>} */
  const texts = new Map();

  /** @param {Entry[]} found */
  function set(found) {
    count = found.length;
    const before = entries.findIndex((each) => each.subject === chosen);
    // One whose answer was refused stays with the reason, also when it waits no longer.
    const known = new Set(found.map((each) => each.subject));
    entries = [...entries.filter((each) => refusals.has(each.subject) && !known.has(each.subject)), ...found];
    if (entries.some((each) => each.subject === chosen)) return;
    // Whoever answers one after the other goes on with the one that took its place.
    chosen = entries[Math.min(Math.max(0, before), entries.length - 1)]?.subject ?? "";
  }

  /**
   * @param {Entry} entry
   * @param {Action} action
   */
  async function answer(entry, action) {
    const text = texts.get(entry.subject) ?? "";
    if (sending.has(entry.subject)) return;
    if (action.text && !text.trim()) return focusText(entry);
    const params = action.text ? { ...action.params, [action.text]: text } : action.params;
    sending.add(entry.subject);
    try {
      await act(`${entry.title}: ${action.text ? "answered" : action.label}`, action.method, params, entry.subject);
      refusals.delete(entry.subject);
      texts.delete(entry.subject);
      await refresh();
      focusChosen();
    } catch (error) {
      refusals.set(entry.subject, /** @type {Error} */ (error).message);
      if (!entries.some((each) => each.subject === entry.subject)) entries = [entry, ...entries];
      show();
    } finally {
      sending.delete(entry.subject);
    }
  }

  /** @param {Entry | undefined} entry */
  function focusText(entry) {
    if (entry) /** @type {HTMLElement | null} */ (find(entry.subject)?.querySelector("textarea"))?.focus();
  }

  /** @param {string} subject */
  const find = (subject) =>
    [...root.querySelectorAll(".entry")].find((each) => /** @type {HTMLElement} */ (each).dataset.subject === subject);

  function focusChosen() {
    const box = /** @type {HTMLElement | undefined} */ (find(chosen));
    box?.focus();
    box?.scrollIntoView({ block: "nearest" });
  }

  /** @param {number} step */
  function choose(step) {
    const at = entries.findIndex((each) => each.subject === chosen);
    const next = entries[Math.max(0, Math.min(entries.length - 1, at + step))];
    if (!next) return;
    chosen = next.subject;
    show();
    focusChosen();
  }

  const current = () => entries.find((each) => each.subject === chosen);

  /** @param {Entry} entry */
  function drawEntry(entry) {
    const written = entry.actions.find((each) => each.text);
    const refusal = refusals.get(entry.subject);
    const name = `text-${entry.subject}`;
    return h(
      "li",
      {
        key: entry.subject,
        class: entry.subject === chosen ? "entry chosen" : "entry",
        "data-subject": entry.subject,
        tabindex: "-1",
        onfocusin: () => {
          if (chosen === entry.subject) return;
          chosen = entry.subject;
          show();
        },
      },
      h(
        "div",
        { class: "title" },
        h("span", { class: "mark", "aria-hidden": "true" }, "!"),
        h("h2", null, entry.title),
        h("time", { datetime: entry.since, title: exact(entry.since) }, ago(entry.since)),
      ),
      h("p", { class: "said" }, entry.text),
      entry.task_id && h("a", { class: "about-task", href: `/task/${entry.task_id}` }, entry.task ?? `task ${short(entry.task_id)}`),
      entry.kind === "review" && h("a", { class: "about-task", href: `/review/${entry.subject}` }, "Look at the diff"),
      written && !isPast() &&
        h("textarea", {
          rows: "1",
          id: name,
          "aria-label": `Your answer to ${entry.title}`,
          placeholder: "Your answer",
          oninput: (/** @type {Event} */ event) =>
            texts.set(entry.subject, /** @type {HTMLTextAreaElement} */ (event.currentTarget).value),
          onkeydown: (/** @type {KeyboardEvent} */ event) => {
            if (event.key === "Enter" && !event.shiftKey) {
              event.preventDefault();
              answer(entry, written);
            } else if (event.key === "Escape") focusChosen();
          },
        }),
      h(
        "div",
        { class: "buttons" },
        !isPast() && entry.actions.map((each, at) =>
          h(
            "button",
            { key: each.label, class: at === 0 ? "strong" : null, onclick: () => answer(entry, each) },
            entry.subject === chosen && at < 9 && h("kbd", { "aria-hidden": "true" }, each.text ? "r" : at + 1),
            each.label,
          ),
        ),
      ),
      refusal &&
        h(
          "p",
          { class: "trouble", role: "alert" },
          withCode(refusal),
          " ",
          h("button", { class: "quiet", onclick: () => (refusals.delete(entry.subject), refresh()) }, "Close"),
        ),
    );
  }

  /** @type {Record<string, () => void>} */
  const keys = {
    j: () => choose(1),
    k: () => choose(-1),
    r: () => focusText(current()),
  };
  for (let at = 0; at < 9; at++) {
    keys[String(at + 1)] = () => {
      const entry = current();
      const action = entry?.actions[at];
      if (entry && action) answer(entry, action);
    };
  }

  const drawEntries = () =>
    h("ol", { class: "entries" }, entries.slice(0, SHOWN).map(drawEntry), entries.length > SHOWN && h("li", { key: "more", class: "mute" }, `and ${entries.length - SHOWN} more`));

  /** @type {[string, string][]} */
  const help = [
    ["j k", "next, previous"],
    ["1–9", "answer"],
    ["r", "write an answer; Enter sends it"],
  ];
  return { set, count: () => count, isEmpty: () => !entries.length, draw: drawEntries, keys, help };
}
