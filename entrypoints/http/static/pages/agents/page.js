// Agents: what each of them is at, what it has earned, and the log of the one that is open.

import { activityText } from "../../parts/activity.js";
import { draw, h } from "../../parts/dom.js";
import { ago, exact, many, MARKS } from "../../parts/format.js";
import { isPast } from "../../parts/moment.js";
import { call, callIfKnown } from "../../parts/rpc.js";
import { windowed } from "../../parts/windowed.js";

/** @import { Page, Place } from "../../page_table.js" */

const ROW = 32;
const MOST = 1000;
const CHUNKS = 50;
const ORDER = ["waiting_for_input", "crashed", "running", "idle", "stopped"];

/** @param {string} status */
const word = (status) => (status === "waiting_for_input" ? "waits for you" : status);

/**
 * @param {Place} place
 * @returns {Page}
 */
export function open({ root, key }) {
  /** @type {any[]} */
  let agents = [];
  /** @type {Map<string, any>} */
  let standings = new Map();
  /** @type {Map<string, any>} */
  let work = new Map();
  let log = "";
  let space = "";
  /** @type {any} */
  let shown = null;

  async function refresh() {
    const [list, earned, status] = await Promise.all([call("agent.list", { limit: MOST }), callIfKnown("standing"), call("status")]);
    agents = list.sort((/** @type {any} */ a, /** @type {any} */ b) => ORDER.indexOf(a.status) - ORDER.indexOf(b.status) || a.name.localeCompare(b.name));
    standings = new Map((earned ?? []).map((/** @type {any} */ each) => [each.agent, each]));
    space = status.spaces[0].space;
    work = new Map(status.spaces[0].rows.map((/** @type {any} */ each) => [each.agent_id, each]));
    if (key) {
      shown = await call("agent.show", { id: key });
      const chunks = await callIfKnown("log.list", { agent: shown.id, limit: CHUNKS });
      log = (chunks ?? []).map((/** @type {any} */ each) => each.content).join("\n");
    }
    show();
  }

  /** @param {any} agent */
  const doing = (agent) => activityText(space, { name: agent.name, session: agent.session_id });

  /** @param {any} agent */
  function drawRow(agent) {
    const standing = standings.get(agent.name);
    const row = work.get(agent.id);
    const isHalted = standing && !standing.active;
    return h(
      "li",
      { key: agent.id, class: agent.status === "waiting_for_input" || isHalted ? "row mine" : "row" },
      h("a", { href: `/agents/${agent.id}` }, agent.name),
      h("span", null, h("span", { class: `mark ${isHalted ? "crashed" : agent.status}`, "aria-hidden": "true" }, MARKS[isHalted ? "crashed" : agent.status]), isHalted ? "halted" : word(agent.status)),
      h("span", { class: "mute" }, doing(agent) ?? "–"),
      row?.task ? h("a", { href: `/task/${row.task_id}` }, row.task) : h("span", { class: "mute" }, "–"),
      h("span", { class: "mute" }, [agent.provider, agent.model].filter(Boolean).join(" ")),
      h("span", { class: "mute", title: isPast() ? "skill points are not known of then" : "skill points" }, standing ? standing.skill_points : "–"),
      h("time", { datetime: agent.updated_at, title: exact(agent.updated_at) }, `${ago(agent.updated_at)} ago`),
    );
  }

  function drawOne() {
    const standing = standings.get(shown.name);
    const row = work.get(shown.id);
    const facts = [
      ["status", word(shown.status)],
      ["at this moment", doing(shown)],
      ["task", row?.task && h("a", { href: `/task/${row.task_id}` }, row.task)],
      ["branch", row?.branch],
      ["setup", [shown.provider, shown.model, shown.mode].filter(Boolean).join(" ")],
      ["session", shown.session_id],
      ["process", shown.pid && `${shown.pid} on ${shown.host}`],
      ["skill points", isPast() ? h("span", { class: "mute" }, "not known of then") : standing && String(standing.skill_points)],
      ["communication", standing && String(standing.communication_score)],
      ["commits, bugs", standing && `${standing.commits}, ${standing.bugs}`],
    ].filter(([, value]) => value);
    return h(
      "section",
      { key: "one", "aria-labelledby": "one-title" },
      h("h2", { id: "one-title" }, shown.name),
      h("dl", { class: "details" }, facts.map(([name, value]) => [h("dt", { key: `${name} name` }, name), h("dd", { key: name }, value)])),
      h("h2", { key: "log" }, "Log"),
      isPast() ? h("p", { class: "mute" }, "What it wrote is not known of then.") : log ? h("pre", { class: "log", tabindex: "0", "aria-label": "Log" }, log) : h("p", { class: "mute" }, "It has written nothing. ", h("code", null, `herdbook log add 'all tests pass' --agent ${shown.name}`)),
    );
  }

  function show() {
    draw(root, [
      h("h1", { key: "title" }, shown ? h("a", { href: "/agents" }, "Agents") : many(agents.length, "agent"), agents.length === MOST && h("span", { class: "mute" }, " (the first)")),
      shown && drawOne(),
      agents.length > 0 &&
        h("div", { key: "titles", class: "row titles", "aria-hidden": "true" }, ["name", "status", "at this moment", "task", "setup", "skill", "changed"].map((each) => h("span", { key: each }, each))),
      agents.length
        ? windowed({ name: "agents", label: "Agents", items: agents, rowHeight: ROW, row: drawRow, redraw: show })
        : h("p", { key: "none", class: "calm" }, "No agents yet. ", h("code", null, "herdbook agent add brisk-otter")),
    ]);
  }

  return { refresh, tick: show };
}
