// Now: what waits for the person, who works and who is stuck, and what is claimed next.

import { activityText } from "../../parts/activity.js";
import { draw, h } from "../../parts/dom.js";
import { duration, leaseLeft, many, MARKS } from "../../parts/format.js";
import { drawTasks, groupByAgent, stateOf, STATES } from "../../parts/held_tasks.js";
import { clock, isPast, shownMoment } from "../../parts/moment.js";
import { bar, burnUp, count, forecastText, forecastTitle, initiativeBars, paceText } from "../../parts/progress.js";
import { hasNotifications, isNotifying, toggleNotifications } from "../../parts/notifications.js";
import { call } from "../../parts/rpc.js";
import { countChanges, createStillness, hasFocus } from "../../parts/stillness.js";
import { createTurns } from "../../parts/turns.js";
import { createQueue } from "../../parts/waiting_queue.js";
import { windowed } from "../../parts/windowed.js";

/** @import { Page, Place } from "../../page_table.js" */

const NEXT = 5;
/** The progress comes from the whole journal: it is read for a tenth of the time at most. */
const SELDOM = 9;
const ROW = { narrow: 44, wide: 32 };
const narrow = matchMedia("(max-width: 860px)");

/**
 * @param {Place} place
 * @returns {Page}
 */
export function open({ root }) {
  const queue = createQueue({ root, show, refresh });
  /** @type {any[]} */
  let rows = [];
  /** @type {any[]} */
  let next = [];
  /** The agents that are shown, by their rows. @type {any[][]} */
  let herd = [];
  /** The tasks that are shown as the next. @type {any[]} */
  let ready = [];
  /** What the agents that are shown are sorted by. @type {Map<string, string>} */
  let places = new Map();
  /** How much waits until the pointer leaves. */
  let changes = 0;
  /** @type {Map<string | null, string>} since when each agent waits for an answer */
  let asked = new Map();
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

  const begin = createTurns();
  const still = createStillness({ root, refresh, release, isBusy: () => hasFocus(root) });

  async function refresh() {
    const isLast = begin();
    const [waiting, status, first] = await Promise.all([
      call("waiting"),
      call("status"),
      call("task.ready", { limit: NEXT }),
    ]);
    if (!isLast()) return;
    queue.set(waiting);
    asked = new Map(waiting.filter((/** @type {any} */ each) => each.kind === "question").map((/** @type {any} */ each) => [each.agent, each.since]).reverse());
    rows = status.spaces[0].rows;
    space = status.spaces[0].space;
    counts = status.spaces[0].tasks;
    next = first;
    arrange(still.mustWait());
    show();
    refreshProgress();
  }

  /** Let those who need a person most stand first, unless that has to wait and would move anything. @param {boolean} mustWait */
  function arrange(mustWait) {
    const sorted = groupByAgent([...rows].sort((a, b) => need(b) - need(a) || (asked.get(a.agent) ?? "").localeCompare(asked.get(b.agent) ?? "")));
    const isMoved = sorted.map(keyOf).join() !== herd.map(keyOf).join() || namesOf(next).join() !== namesOf(ready).join();
    if (mustWait && isMoved && herd.length + ready.length > 0) {
      const known = new Map(sorted.map((held) => [keyOf(held), held]));
      herd = herd.map((held) => known.get(keyOf(held)) ?? held);
      changes = Math.max(1, countChanges(places, placesOf(sorted)) + namesOf(next).filter((each) => !namesOf(ready).includes(each)).length);
      return;
    }
    herd = sorted;
    ready = next;
    places = placesOf(sorted);
    changes = 0;
  }

  /** Show what waits. */
  function release() {
    if (!changes) return;
    arrange(false);
    show();
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
      const found = await call("progress");
      if (moment === (shownMoment()?.seq ?? null)) {
        progress = found;
        show();
      }
    } catch {
      // The head says that there is no connection; the next change or its return reads again.
    }
    const now = performance.now();
    progressDue = now + SELDOM * (now - begun);
    isProgressRead = false;
    if (isProgressOld) refreshProgress();
  }

  /** @param {any[]} held the rows of one agent, that which needs a person most first */
  function drawRow(held) {
    const row = held[0];
    const state = stateOf(held, row.status);
    const isWaiting = state === "waiting_for_input";
    const isOver = row.lease_until && Date.parse(row.lease_until) < clock();
    const others = row.waiting_for.filter((/** @type {string} */ each) => each !== "you");
    const why = isWaiting ? "waits for you" : others.length ? `waits for ${others.join(", ")}` : STATES[state] ?? state;
    const since = (isWaiting && asked.get(row.agent)) || row.since;
    return h(
      "li",
      { key: keyOf(held), class: `worker ${state}${isOver ? " over" : ""}` },
      h("span", { class: `mark ${state}`, "aria-hidden": "true" }, MARKS[state] ?? "○"),
      h("a", { class: "agent", href: `/agents/${row.agent_id ?? ""}` }, row.agent ?? "nobody known"),
      drawTasks(held, "no task"),
      h("span", { class: "doing mute" }, row.agent && activityText(space, { name: row.agent, session: row.session_id })),
      h("span", { class: "why mute" }, why, row.lease_until && !isWaiting ? `, ${leaseLeft(row.lease_until)}` : `, ${duration((clock() - Date.parse(since)) / 1000)}`),
    );
  }

  function summary() {
    const names = new Map(groupByAgent(rows).map((held) => [held[0].agent, stateOf(held, held[0].status)]));
    const states = [...names.values()];
    /** @param {string} state */
    const count = (state) => states.filter((each) => each === state).length;
    const parts = Object.entries(STATES)
      .map(([state, word]) => ({ number: count(state), word }))
      .filter(({ number }) => number)
      .map(({ number, word }) => `${number} ${number === 1 ? word : word.replace("waits", "wait")}`);
    return `${many(names.size, "agent")}: ${parts.join(", ")}`;
  }

  function show() {
    draw(root, [
      h(
        "section",
        { key: "queue", class: "queue", "aria-labelledby": "queue-title" },
        h("h1", { id: "queue-title" }, isPast() ? "Waited for you " : "Waiting for you ", queue.count() > 0 && h("b", { class: "count" }, queue.countText())),
        !queue.isEmpty() && queue.draw(),
        !queue.count() && h("p", { key: "calm", class: "calm" }, isPast() ? "Nothing waited for you." : "Nothing waits for you."),
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
        still.draw(
          changes ? `${many(changes, "change")}, show` : "",
          herd.length
            ? windowed({ name: "herd", label: "Agents", items: herd, rowHeight: narrow.matches ? ROW.narrow : ROW.wide, row: drawRow, redraw: show })
            : h("p", { class: "mute" }, "No agents yet. ", h("code", null, "herdbook agent add brisk-otter")),
          h("h2", { key: "next" }, "Next to be claimed ", h("span", { class: "mute" }, `${counts.ready.toLocaleString("en")} ready, ${counts.waiting.toLocaleString("en")} waiting`)),
          ready.length
            ? h("ol", { class: "next" }, ready.map((each) => h("li", { key: each.id }, h("a", { href: `/task/${each.id}` }, each.name), h("span", { class: "mute" }, each.priority === "medium" ? "" : ` ${each.priority}`))))
            : h("p", { class: "mute" }, counts.held || counts.waiting ? "No task is ready." : ["The plan is empty. ", h("code", null, "herdbook task add 'write the parser'")]),
        ),
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

  return {
    refresh,
    tick() {
      arrange(still.isStill());
      show();
    },
    keys: queue.keys,
    help: queue.help,
  };
}

/** The agent that a group of rows is about, else the task that nobody known holds. @param {any[]} held @returns {string} */
const keyOf = (held) => held[0].agent_id ?? held[0].task_id;

/** @param {any[][]} sorted @returns {Map<string, string>} */
const placesOf = (sorted) => new Map(sorted.map((held) => [keyOf(held), String(need(held[0]))]));

/** @param {any[]} tasks @returns {string[]} */
const namesOf = (tasks) => tasks.map((each) => `${each.id} ${each.name}`);

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
