// Agents: what each of them is at, does at this moment and has earned; or one of them, with its log.

import { activityText } from "../../parts/activity.js";
import { draw, h } from "../../parts/dom.js";
import { ago, exact, many, MARKS } from "../../parts/format.js";
import { drawTasks, groupByAgent, stateOf, STATES } from "../../parts/held_tasks.js";
import { isPast } from "../../parts/moment.js";
import { call, callIfKnown } from "../../parts/rpc.js";
import { countChanges, createStillness, hasFocus } from "../../parts/stillness.js";
import { createTurns } from "../../parts/turns.js";
import { windowed } from "../../parts/windowed.js";
import { openAgent } from "./agent.js";

/** @import { Page, Place } from "../../page_table.js" */

const ROW = { narrow: 52, wide: 32 };
const narrow = matchMedia("(max-width: 860px)");
const MOST = 1000;
const ORDER = ["waiting_for_input", "halted", "crashed", "running", "idle", "stopped"];
const TITLES = ["name", "status", "at this moment", "task", "setup", "skill", "changed"];

/**
 * @param {Place} place
 * @returns {Page}
 */
export const open = (place) => (place.key ? openAgent(place, place.key) : openList(place));

/**
 * @param {Place} place
 * @returns {Page}
 */
function openList({ root }) {
  /** @type {any[]} */
  let agents = [];
  /** All agents in their order, while that differs from what is shown. @type {any[] | null} */
  let waiting = null;
  /** @type {Map<string, any>} */
  let standings = new Map();
  /** What `status` tells of each agent, by its id. @type {Map<string, any[]>} */
  let held = new Map();
  let space = "";
  /** What the agents that are shown are sorted by. @type {Map<string, string>} */
  let places = new Map();

  const begin = createTurns();
  const still = createStillness({ root, refresh, release, isBusy: () => hasFocus(root) });

  async function refresh() {
    const isLast = begin();
    const [list, earned, status] = await Promise.all([call("agent.list", { limit: MOST }), callIfKnown("standing"), call("status")]);
    if (!isLast()) return;
    standings = new Map((earned ?? []).map((/** @type {any} */ each) => [each.agent, each]));
    space = status.spaces[0].space;
    held = new Map(groupByAgent(status.spaces[0].rows).map((rows) => [rows[0].agent_id, rows]));
    const sorted = list.sort((/** @type {any} */ a, /** @type {any} */ b) => place(a) - place(b) || a.name.localeCompare(b.name));
    const known = new Map(sorted.map((/** @type {any} */ each) => [each.id, each]));
    const isMoved = agents.length > 0 && ids(agents) !== ids(sorted);
    waiting = still.mustWait() && isMoved ? sorted : null;
    agents = waiting ? agents.map((each) => known.get(each.id) ?? each) : sorted;
    if (!waiting) places = placesOf(agents);
    show();
  }

  /** Show what waits. */
  function release() {
    if (!waiting) return;
    agents = waiting;
    waiting = null;
    places = placesOf(agents);
    show();
  }

  /** @param {any[]} all */
  const ids = (all) => all.map((each) => each.id).join();

  /** @param {any[]} all @returns {Map<string, string>} */
  const placesOf = (all) => new Map(all.map((each) => [each.id, `${place(each)} ${each.name}`]));

  /** @param {any} agent */
  const stateNow = (agent) => (standings.get(agent.name)?.active === false ? "halted" : stateOf(held.get(agent.id) ?? [], agent.status));

  /** @param {any} agent */
  const place = (agent) => ORDER.indexOf(stateNow(agent));

  /** @param {any} agent */
  function drawRow(agent) {
    const standing = standings.get(agent.name);
    const state = stateNow(agent);
    return h(
      "li",
      { key: agent.id, class: ["waiting_for_input", "halted"].includes(state) ? "row mine" : "row" },
      h("a", { href: `/agents/${agent.id}` }, agent.name),
      h("span", null, h("span", { class: `mark ${state}`, "aria-hidden": "true" }, MARKS[state]), STATES[state] ?? state),
      h("span", { class: "mute" }, activityText(space, { name: agent.name, session: agent.session_id }) ?? (narrow.matches ? "" : "–")),
      drawTasks(held.get(agent.id) ?? [], narrow.matches ? "no task" : "–"),
      h("span", { class: "mute" }, [agent.provider, agent.model].filter(Boolean).join(" ")),
      h("span", { class: "mute", title: isPast() ? "skill points are not known of then" : "skill points" }, standing ? standing.skill_points : "–"),
      h("time", { datetime: agent.updated_at, title: exact(agent.updated_at) }, `${ago(agent.updated_at)} ago`),
    );
  }

  function show() {
    const count = (waiting ?? agents).length;
    draw(root, [
      h("h1", { key: "title" }, many(count, "agent"), count === MOST && h("span", { class: "mute" }, " (the first)")),
      still.draw(
        waiting ? `${many(countChanges(places, placesOf(waiting)), "change")}, show` : "",
        agents.length > 0 && h("div", { key: "titles", class: "row titles", "aria-hidden": "true" }, TITLES.map((each) => h("span", { key: each }, each))),
        agents.length
          ? windowed({ name: "agents", label: "Agents", items: agents, rowHeight: narrow.matches ? ROW.narrow : ROW.wide, row: drawRow, redraw: show })
          : h("p", { key: "none", class: "calm" }, "No agents yet. ", h("code", null, "herdbook agent add brisk-otter")),
      ),
    ]);
  }

  return { refresh, tick: show };
}
