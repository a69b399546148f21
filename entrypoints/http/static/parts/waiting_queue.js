// What waits for the person, answered in place: entries with their buttons, texts and keys. The
// server says what waits and which operations answer it; a refusal stays where it was given.

import { h, withCode } from "./dom.js";
import { ago, exact, short } from "./format.js";
import { isPast } from "./moment.js";
import { act } from "./notices.js";
import { countText, isCut } from "./notifications.js";

/**
 * @typedef {{ label: string, method: string, params: Record<string, any>, text: string | null }} Action
 * @typedef {{ kind: string, subject: string, asked?: number | null, since: string, title: string, text: string, agent: string | null, task_id: string | null, task: string | null, actions: Action[], cut: boolean }} Entry
 */

const SHOWN = 50;
/** So long after the pointer or the focus has left the list, what has gone leaves it too. */
const PAUSE = 300;

/** What tells an entry from all others: an agent that asks something else has another one. @param {Entry} entry */
const nameOf = (entry) => `${entry.kind} ${entry.subject} ${entry.asked ?? ""}`;

/**
 * @param {{ root: HTMLElement, show: () => void, refresh: () => Promise<void> }} page
 */
export function createQueue({ root, show, refresh }) {
  /** What waits, as it was told last. @type {Map<string, Entry>} */
  let waiting = new Map();
  /** What is shown, in its places: some of it may have gone. @type {Entry[]} */
  let entries = [];
  let isRead = false;
  let wasPast = false;
  let chosen = "";
  /** Where the chosen entry was seen last. */
  let place = 0;
  /** The refusals of answers, by what was answered. @type {Map<string, string>} */
  const refusals = new Map();
  /** What was answered and is on its way. @type {Set<string>} */
  const sending = new Set();
  /** What was answered here. @type {Set<string>} */
  const answered = new Set();
  /** What is being written. @type {Map<string, string>} */
  const texts = new Map();

  /** @param {Entry[]} found */
  function set(found) {
    const before = waiting;
    waiting = new Map(found.map((each) => [nameOf(each), each]));
    for (const name of waiting.keys()) if (!before.has(name)) answered.delete(name);
    // Later the person chooses: nothing that was not looked at is answered by a key.
    if (!isRead && found.length) chosen = nameOf(found[0]);
    isRead = true;
  }

  /** Whether the person is about to press something in the list: with the pointer, or by keys. */
  function isHeld() {
    const list = root.querySelector(".entries");
    return list !== null && (list.matches(":hover") || list.querySelector(":focus-visible") !== null);
  }

  /** Bring what is shown up to date; while it is held, everything keeps its place. */
  function arrange() {
    if (isHeld() && !isPast() && !wasPast) {
      const there = new Set(entries.map(nameOf));
      const fresh = [...waiting].filter(([name]) => !there.has(name)).map(([, each]) => each);
      entries = [...entries.map((each) => waiting.get(nameOf(each)) ?? each), ...fresh];
    } else {
      // One whose answer was refused stays with the reason, also when it waits no longer.
      const refused = entries.filter((each) => refusals.has(nameOf(each)) && !waiting.has(nameOf(each)));
      entries = [...refused, ...waiting.values()];
      const names = new Set(entries.map(nameOf));
      for (const name of texts.keys()) if (!names.has(name)) texts.delete(name);
    }
    wasPast = isPast();
    const at = entries.findIndex((each) => nameOf(each) === chosen);
    if (at >= 0) place = at;
    return entries;
  }

  /**
   * @param {Entry} entry
   * @param {Action} action
   */
  async function answer(entry, action) {
    const name = nameOf(entry);
    const text = texts.get(name) ?? "";
    if (sending.has(name) || !waiting.has(name)) return;
    if (action.text && !text.trim()) return focusText(entry);
    const params = action.text ? { ...action.params, [action.text]: text } : action.params;
    sending.add(name);
    try {
      await act(`${entry.title}: ${action.text ? "answered" : action.label}`, action.method, params, entry.subject);
      answered.add(name);
      refusals.delete(name);
      texts.delete(name);
      const focused = /** @type {HTMLElement | null} */ (document.activeElement);
      if (find(name)?.contains(focused)) focused?.blur();
      await refresh();
    } catch (error) {
      refusals.set(name, /** @type {Error} */ (error).message);
      if (!entries.some((each) => nameOf(each) === name)) entries = [entry, ...entries];
      show();
    } finally {
      sending.delete(name);
    }
  }

  /** @param {Entry | undefined} entry */
  function focusText(entry) {
    if (entry) /** @type {HTMLElement | null} */ (find(nameOf(entry))?.querySelector("textarea"))?.focus();
  }

  /** @param {string} name */
  const find = (name) =>
    [...root.querySelectorAll(".entry")].find((each) => /** @type {HTMLElement} */ (each).dataset.name === name);

  function focusChosen() {
    const box = /** @type {HTMLElement | undefined} */ (find(chosen));
    box?.focus();
    box?.scrollIntoView({ block: "nearest" });
  }

  /**
   * Choose the next entry, or the one before; if the chosen one has left, from where it was.
   * @param {number} step
   */
  function choose(step) {
    const at = entries.some((each) => nameOf(each) === chosen) ? place : place - 0.5;
    const all = entries.filter((each) => waiting.has(nameOf(each)));
    const next = step > 0 ? all.find((each) => entries.indexOf(each) > at) : all.findLast((each) => entries.indexOf(each) < at);
    const found = next ?? current() ?? all.at(step > 0 ? -1 : 0);
    if (!found) return;
    chosen = nameOf(found);
    show();
    focusChosen();
  }

  const current = () => waiting.get(chosen);

  /** What has gone leaves its place when nobody points there any more. */
  const leave = () => void setTimeout(show, PAUSE);

  /** @param {Entry} entry */
  function drawEntry(entry) {
    const name = nameOf(entry);
    const written = entry.actions.find((each) => each.text);
    const refusal = refusals.get(name);
    const hasGone = !waiting.has(name);
    return h(
      "li",
      {
        key: name,
        class: `entry${name === chosen ? " chosen" : ""}${hasGone ? " gone" : ""}`,
        "data-name": name,
        tabindex: "-1",
        onfocusin: () => {
          if (chosen === name) return;
          chosen = name;
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
      hasGone && h("span", { key: "state", class: "state" }, answered.has(name) ? "answered" : "no longer waits"),
      h("p", { class: "said" }, entry.text),
      entry.task_id && h("a", { class: "about-task", href: `/task/${entry.task_id}` }, entry.task ?? `task ${short(entry.task_id)}`),
      entry.kind === "review" && h("a", { class: "about-task", href: `/review/${entry.subject}` }, "Look at the diff"),
      written && !isPast() &&
        h("textarea", {
          rows: "1",
          id: `text-${name.replaceAll(" ", "-")}`,
          "aria-label": `Your answer to ${entry.title}`,
          placeholder: "Your answer",
          readonly: hasGone,
          value: texts.get(name) ?? "",
          oninput: (/** @type {Event} */ event) =>
            texts.set(name, /** @type {HTMLTextAreaElement} */ (event.currentTarget).value),
          onkeydown: (/** @type {KeyboardEvent} */ event) => {
            if (event.key === "Enter" && !event.shiftKey) {
              event.preventDefault();
              if (!event.repeat) answer(entry, written);
            } else if (event.key === "Escape") focusChosen();
          },
        }),
      h(
        "div",
        { class: "buttons" },
        !isPast() && entry.actions.map((each, at) =>
          h(
            "button",
            { key: each.label, class: at === 0 ? "strong" : null, disabled: hasGone, onclick: () => answer(entry, each) },
            name === chosen && at < 9 && h("kbd", { "aria-hidden": "true" }, each.text ? "r" : at + 1),
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
          h("button", { class: "quiet", onclick: () => (refusals.delete(name), refresh()) }, "Close"),
        ),
    );
  }

  /** @type {Record<string, () => void>} */
  const keys = {
    j: () => choose(1),
    k: () => choose(-1),
    r: () => {
      if (!current()) choose(1);
      focusText(current());
    },
  };
  for (let at = 0; at < 9; at++) {
    keys[String(at + 1)] = () => {
      const entry = current();
      const action = entry?.actions[at];
      if (entry && action) answer(entry, action);
    };
  }

  function drawEntries() {
    const all = arrange();
    const rest = all.length - SHOWN;
    return h(
      "ol",
      { key: "entries", class: "entries", onpointerleave: leave, onfocusout: leave },
      all.slice(0, SHOWN).map(drawEntry),
      rest > 0 && h("li", { key: "more", class: "mute" }, `and ${rest}${isCut([...waiting.values()]) ? "+" : ""} more`),
    );
  }

  /** @type {[string, string][]} */
  const help = [
    ["j k", "next, previous"],
    ["1–9", "answer"],
    ["r", "write an answer; Enter sends it"],
  ];
  return {
    set,
    count: () => waiting.size,
    countText: () => countText([...waiting.values()]),
    isEmpty: () => !arrange().length,
    draw: drawEntries,
    keys,
    help,
  };
}
