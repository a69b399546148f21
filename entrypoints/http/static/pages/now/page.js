// Now: what waits for the person, who works and who is stuck, and what is claimed next.

import { activityText } from "../../parts/activity.js";
import { draw, h } from "../../parts/dom.js";
import { ago, duration, exact, leaseLeft, many, MARKS, short } from "../../parts/format.js";
import { clock, isPast, shownMoment } from "../../parts/moment.js";
import { act } from "../../parts/notices.js";
import { bar, burnUp, count, forecastText, forecastTitle, initiativeBars, paceText } from "../../parts/progress.js";
import { hasNotifications, isNotifying, toggleNotifications } from "../../parts/notifications.js";
import { call } from "../../parts/rpc.js";
import { windowed } from "../../parts/windowed.js";

/** @import { Page, Place } from "../../page_table.js" */
/**
 * @typedef {{ label: string, method: string, params: Record<string, any>, text: string | null }} Action
 * @typedef {{ kind: string, subject: string, since: string, title: string, text: string, agent: string | null, task_id: string | null, actions: Action[] }} Entry
 */

const NEXT = 5;
/** The progress comes from the whole journal: it is read for a tenth of the time at most. */
const SELDOM = 9;
const ROW = { narrow: 44, wide: 32 };
const narrow = matchMedia("(max-width: 860px)");
const WORDS = /** @type {Record<string, string>} */ ({
  running: "works",
  waiting_for_input: "waits for you",
  idle: "idle",
  crashed: "crashed",
});

/**
 * @param {Place} place
 * @returns {Page}
 */
export function open({ root }) {
  /** @type {Entry[]} */
  let entries = [];
  /** @type {any[]} */
  let rows = [];
  /** @type {any[]} */
  let ready = [];
  let counts = { ready: 0, held: 0, waiting: 0 };
  let space = "";
  /** @type {import("../../parts/progress.js").Progress | null} */
  let progress = null;
  let progressDue = 0;
  let progressTimer = 0;
  let isProgressRead = false;
  let isProgressOld = false;
  /** @type {number | null} */
  let progressMoment = null;
  let chosen = "";
  /** The refusals of answers, by what was answered. @type {Map<string, string>} */
  const refusals = new Map();
  /** What is being written. @type {Map<string, string>} */
  const texts = new Map();

  async function refresh() {
    const [waiting, status, next] = await Promise.all([
      call("waiting"),
      call("status"),
      call("task.ready", { limit: NEXT }),
    ]);
    entries = waiting;
    rows = status.spaces[0].rows;
    space = status.spaces[0].space;
    counts = status.spaces[0].tasks;
    ready = next;
    if (!entries.some((each) => each.subject === chosen)) chosen = entries[0]?.subject ?? "";
    show();
    refreshProgress();
  }

  /** Read how far the plan is: without keeping the page from being shown, and the seldomer the longer it takes. */
  async function refreshProgress() {
    clearTimeout(progressTimer);
    isProgressOld = isProgressRead;
    if (isProgressRead) return;
    const moment = shownMoment()?.seq ?? null;
    const begun = performance.now();
    if (moment === progressMoment && begun < progressDue) {
      progressTimer = window.setTimeout(refreshProgress, progressDue - begun);
      return;
    }
    isProgressRead = true;
    progressMoment = moment;
    try {
      progress = await call("progress");
      show();
    } catch {
      // The head says that there is no connection; the next change or its return reads again.
    }
    const now = performance.now();
    progressDue = now + SELDOM * (now - begun);
    isProgressRead = false;
    if (isProgressOld) refreshProgress();
  }

  /**
   * @param {Entry} entry
   * @param {Action} action
   */
  async function answer(entry, action) {
    const text = texts.get(entry.subject) ?? "";
    if (action.text && !text.trim()) return focusText(entry);
    const params = action.text ? { ...action.params, [action.text]: text } : action.params;
    try {
      await act(`${entry.title}: ${action.text ? "answered" : action.label}`, action.method, params, entry.subject);
      refusals.delete(entry.subject);
      texts.delete(entry.subject);
      await refresh();
      focusChosen();
    } catch (error) {
      refusals.set(entry.subject, /** @type {Error} */ (error).message);
      show();
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
      entry.task_id && h("a", { class: "about", href: `/task/${entry.task_id}` }, `task ${short(entry.task_id)}`),
      entry.kind === "review" && h("a", { class: "about", href: `/review/${entry.subject}` }, "look at the diff"),
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
      refusal && h("p", { class: "trouble", role: "alert" }, refusal),
    );
  }

  /** @param {any} row */
  function drawRow(row) {
    const state = stateOf(row);
    const isWaiting = state === "waiting_for_input";
    const isOver = row.lease_until && Date.parse(row.lease_until) < clock();
    const others = row.waiting_for.filter((/** @type {string} */ each) => each !== "you");
    const why = isWaiting ? "waits for you" : others.length ? `waits for ${others.join(", ")}` : WORDS[state] ?? state;
    return h(
      "li",
      { key: `${row.agent_id} ${row.task_id}`, class: `worker ${state}${isOver ? " over" : ""}` },
      h("span", { class: `mark ${state}`, "aria-hidden": "true" }, MARKS[state] ?? "○"),
      h("a", { class: "agent", href: `/agents/${row.agent_id ?? ""}` }, row.agent ?? "nobody known"),
      h("span", { class: "what" }, row.task ? h("a", { href: `/task/${row.task_id}` }, row.task) : h("span", { class: "mute" }, "no task")),
      h("span", { class: "doing mute" }, row.agent && activityText(space, { name: row.agent, session: row.session_id })),
      h("span", { class: "why mute" }, why, row.lease_until && !isWaiting ? `, ${leaseLeft(row.lease_until)}` : `, ${duration((clock() - Date.parse(row.since)) / 1000)}`),
    );
  }

  function summary() {
    const names = new Map(rows.map((row) => [row.agent, stateOf(row)]));
    const states = [...names.values()];
    /** @param {string} state */
    const count = (state) => states.filter((each) => each === state).length;
    const parts = Object.entries(WORDS)
      .map(([state, word]) => [count(state), word])
      .filter(([number]) => number)
      .map(([number, word]) => `${number} ${number === 1 ? word : String(word).replace("works", "work").replace("waits", "wait")}`);
    return `${many(names.size, "agent")}: ${parts.join(", ")}`;
  }

  function show() {
    const sorted = [...rows].sort((a, b) => need(b) - need(a));
    draw(root, [
      h(
        "section",
        { key: "queue", class: "queue", "aria-labelledby": "queue-title" },
        h("h1", { id: "queue-title" }, isPast() ? "Waited for you " : "Waiting for you ", entries.length > 0 && h("b", { class: "count" }, entries.length)),
        entries.length
          ? h("ol", { class: "entries" }, entries.slice(0, 50).map(drawEntry), entries.length > 50 && h("li", { key: "more", class: "mute" }, `and ${entries.length - 50} more`))
          : h("p", { class: "calm" }, isPast() ? "Nothing waited for you." : "Nothing waits for you."),
        !isPast() && hasNotifications() &&
          h(
            "button",
            {
              class: "quiet bell",
              title: "a notification of your desktop for each thing that newly waits for you",
              onclick: () => toggleNotifications().then(show),
            },
            isNotifying() ? "Stop notifying me" : "Notify me",
          ),
      ),
      h(
        "section",
        { key: "herd", class: "herd", "aria-labelledby": "herd-title" },
        h("h2", { id: "herd-title" }, rows.length ? summary() : "Agents"),
        rows.length
          ? windowed({ name: "herd", label: "Agents", items: sorted, rowHeight: narrow.matches ? ROW.narrow : ROW.wide, row: drawRow, redraw: show })
          : h("p", { class: "mute" }, "No agents yet. ", h("code", null, "herdbook agent add brisk-otter")),
        h("h2", { key: "next" }, "Next to be claimed ", h("span", { class: "mute" }, `${counts.ready} ready, ${counts.waiting} waiting`)),
        ready.length
          ? h("ol", { class: "next" }, ready.map((each) => h("li", { key: each.id }, h("a", { href: `/task/${each.id}` }, each.name), h("span", { class: "mute" }, each.priority === "medium" ? "" : ` ${each.priority}`))))
          : h("p", { class: "mute" }, counts.held || counts.waiting ? "No task is ready." : ["The plan is empty. ", h("code", null, "herdbook task add 'write the parser'")]),
        progress && progress.now.total > 0 && drawProgress(progress),
      ),
    ]);
  }

  /** @param {import("../../parts/progress.js").Progress} found */
  function drawProgress(found) {
    return h(
      "section",
      { key: "progress", class: "progress", "aria-labelledby": "progress-title" },
      h("h2", { id: "progress-title" }, "Progress ", h("span", { class: "mute" }, `${count(found.now)} done`)),
      bar(found.now, "The whole plan"),
      h("p", { class: "mute", title: forecastTitle(found) }, `${paceText(found)} ${forecastText(found)}`),
      burnUp(found),
      initiativeBars(found),
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
  return {
    refresh,
    tick: show,
    keys,
    help: [
      ["j k", "next, previous"],
      ["1–9", "answer"],
      ["r", "write an answer; Enter sends it"],
    ],
  };
}

/**
 * The state of an agent: one that asked a person waits, whatever else it does.
 * @param {any} row
 * @returns {string}
 */
const stateOf = (row) => (row.waiting_for.includes("you") ? "waiting_for_input" : row.status ?? "crashed");

/**
 * How much a row needs a person: those who are stuck stand first, then those who work.
 * @param {any} row
 */
function need(row) {
  if (row.waiting_for.includes("you")) return 4;
  if (row.status === "crashed" || !row.agent) return 3;
  if (row.lease_until && Date.parse(row.lease_until) < clock()) return 2;
  return row.task ? 1 : 0;
}
