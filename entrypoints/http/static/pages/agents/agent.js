// One agent: what it waits for, with the way back, what it holds and does, its standing, its log.

import { activityText } from "../../parts/activity.js";
import { draw, h } from "../../parts/dom.js";
import { ago, exact, leaseLeft, MARKS, shellWord } from "../../parts/format.js";
import { stateOf, STATES } from "../../parts/held_tasks.js";
import { isPast } from "../../parts/moment.js";
import { act } from "../../parts/notices.js";
import { call, callIfKnown } from "../../parts/rpc.js";
import { createTurns } from "../../parts/turns.js";
import { createQueue } from "../../parts/waiting_queue.js";

/** @import { Page, Place } from "../../page_table.js" */

const PIECES = 50;
/** No feed tells of logs: new pieces are looked for so often, in milliseconds. */
const LOOK = 4000;
const ACTIVE = ["idle", "running", "waiting_for_input"];

/**
 * @param {Place} place
 * @param {string} key
 * @returns {Page}
 */
export function openAgent({ root, replace, entitle }, key) {
  /** @type {any} */
  let agent = null;
  /** @type {any} */
  let standing = null;
  /** @type {any} */
  let space = null;
  /** @type {any[]} */
  let pieces = [];
  let refusal = "";
  let looked = 0;
  /** Whether the log is shown to its end, so that new pieces are shown too. */
  let isAtEnd = true;
  const queue = createQueue({ root, show, refresh });

  const begin = createTurns();

  async function refresh() {
    const isLast = begin();
    const found = await call("agent.show", { id: key });
    if (!isLast()) return;
    // A name or a part of an id led here; the whole id stays true when the name changes.
    if (key !== found.id) replace(`/agents/${found.id}`);
    const [status, waiting, earned, log] = await Promise.all([
      call("status"),
      call("waiting"),
      callIfKnown("standing", { agent: found.name }),
      callIfKnown("log.list", { agent: found.id, last: PIECES }),
    ]);
    if (!isLast()) return;
    agent = found;
    entitle(agent.name);
    space = status.spaces[0];
    queue.set(waiting.filter((/** @type {any} */ each) => each.agent === agent.name));
    standing = earned?.[0] ?? null;
    pieces = log ?? [];
    looked = Date.now();
    show();
  }

  async function readLog() {
    looked = Date.now();
    const last = pieces.at(-1);
    const found = await call("log.list", last ? { agent: agent.id, after: last.id, limit: PIECES } : { agent: agent.id, last: PIECES });
    // What was read meanwhile has these pieces, or is of another moment.
    if (!found.length || isPast() || pieces.at(-1)?.id !== last?.id) return;
    pieces = [...pieces, ...found].slice(-PIECES);
    show();
  }

  /**
   * @param {string} label
   * @param {string} method
   */
  async function run(label, method) {
    try {
      await act(`${agent.name}: ${label}`, method, { name: agent.id }, agent.id);
      refusal = "";
      await refresh();
    } catch (error) {
      refusal = /** @type {Error} */ (error).message;
      show();
    }
  }

  function drawButtons() {
    const isActive = ACTIVE.includes(agent.status);
    return h(
      "div",
      { key: "buttons", class: "buttons" },
      isActive && h("button", { key: "stop", title: "Record that it has ended; its process, if there is one, goes on", onclick: () => run("stopped", "agent.stop") }, "Stop"),
      !isActive && h("button", { key: "resume", title: "Let it go on, in the next session of its log", onclick: () => run("resumed", "agent.resume") }, "Resume"),
    );
  }

  /** @param {any} row */
  function drawHeld(row) {
    return h(
      "li",
      { key: row.task_id },
      h("span", { class: "mark held", "aria-hidden": "true" }, MARKS.held),
      h("a", { href: `/task/${row.task_id}` }, row.task),
      h("span", { class: "mute" }, row.lease_until ? leaseLeft(row.lease_until) : ""),
    );
  }

  function drawFacts() {
    const worktree = space.worktrees.find((/** @type {any} */ each) => each.worktree_id === agent.worktree_id);
    const facts = [
      ["at this moment", activityText(space.space, { name: agent.name, session: agent.session_id })],
      ["setup", [agent.provider, agent.model, agent.mode].filter(Boolean).join(" ")],
      ["worktree", worktree && [worktree.path, worktree.branch && h("span", { class: "mute" }, ` on ${worktree.branch}`)]],
      ["session", agent.session_id],
      ["process", agent.pid && `${agent.pid} on ${agent.host}`],
      ["exit code", agent.exit_code],
      ["changed", h("time", { datetime: agent.updated_at, title: exact(agent.updated_at) }, `${ago(agent.updated_at)} ago`)],
    ].filter(([, value]) => value !== null && value !== undefined && value !== "");
    return h("dl", { key: "facts", class: "details" }, facts.map(([name, value]) => [h("dt", { key: `${name} name` }, name), h("dd", { key: name }, value)]));
  }

  function drawStanding() {
    if (isPast()) return h("p", { class: "mute" }, "Its standing is not known of then.");
    if (!standing) return h("p", { class: "mute" }, "The record knows nothing of it yet. ", h("code", null, "herdbook hooks install git"));
    const facts = [
      ["skill points", standing.skill_points],
      ["experience", standing.experience_points.toLocaleString("en")],
      ["communication", standing.communication_score],
      ["commits", standing.commits],
      ["bugs", standing.bugs],
    ];
    return [
      h("dl", { key: "numbers", class: "details" }, facts.map(([name, value]) => [h("dt", { key: `${name} name` }, name), h("dd", { key: name }, value)])),
      standing.sentences.map((/** @type {string} */ each, /** @type {number} */ at) => h("p", { key: `sentence ${at}`, class: "mute" }, `${each}.`)),
    ];
  }

  function drawLog() {
    if (isPast()) return h("p", { class: "mute" }, "What it wrote is not known of then.");
    if (!pieces.length) return h("p", { class: "mute" }, "It has written nothing. ", h("code", null, `herdbook log add 'all tests pass' --agent ${shellWord(agent.name)}`));
    return h("pre", { class: "log", tabindex: "0", "aria-label": "Log", onscroll: noteScroll }, pieces.map((each) => each.content.replace(/\n?$/, "\n")).join(""));
  }

  function show() {
    if (!agent) return;
    const rows = space.rows.filter((/** @type {any} */ each) => each.agent_id === agent.id);
    const state = standing?.active === false ? "halted" : stateOf(rows, agent.status);
    const held = rows.filter((/** @type {any} */ each) => each.task);
    draw(root, [
      h(
        "div",
        { key: "title", class: "filter" },
        h("h1", null, h("a", { href: "/agents" }, "Agents"), " / ", agent.name),
        h("span", null, h("span", { class: `mark ${state}`, "aria-hidden": "true" }, MARKS[state]), STATES[state] ?? state),
        !isPast() && drawButtons(),
      ),
      refusal && h("p", { key: "refusal", class: "trouble", role: "alert" }, refusal),
      !queue.isEmpty() && h("section", { key: "queue", "aria-label": "Waiting for you" }, queue.draw()),
      h(
        "div",
        { key: "both", class: "both" },
        h("section", { "aria-labelledby": "facts-title" }, h("h2", { id: "facts-title" }, "Facts"), drawFacts()),
        h("section", { "aria-labelledby": "held-title" }, h("h2", { id: "held-title" }, "Holds"), held.length ? h("ul", { class: "related" }, held.map(drawHeld)) : h("p", { class: "mute" }, "No task. ", h("code", null, `herdbook claim --agent ${shellWord(agent.name)}`))),
        h("section", { "aria-labelledby": "standing-title" }, h("h2", { id: "standing-title" }, "Standing"), drawStanding()),
      ),
      h("section", { key: "log", "aria-labelledby": "log-title" }, h("h2", { id: "log-title" }, "Log ", pieces.length === PIECES && h("span", { class: "mute" }, `the last ${PIECES} pieces`)), drawLog()),
    ]);
    if (isAtEnd) requestAnimationFrame(scrollLog); // it has a height once it is in the document
  }

  function scrollLog() {
    const box = root.querySelector(".log");
    if (box) box.scrollTop = box.scrollHeight;
  }

  /** @param {Event} event */
  function noteScroll(event) {
    const box = /** @type {HTMLElement} */ (event.currentTarget);
    isAtEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 8;
  }

  function tick() {
    show();
    // What cannot be read now is read at the next look.
    if (agent && !isPast() && Date.now() - looked >= LOOK) readLog().catch(() => undefined);
  }

  return { refresh, tick, keys: queue.keys, help: queue.help };
}
