// What `status` tells of agents, the same on every page: their states, and what each of them holds.

import { h } from "./dom.js";

/** The states of agents in words. @type {Record<string, string>} */
export const STATES = { running: "running", waiting_for_input: "waits for you", idle: "idle", crashed: "crashed", stopped: "stopped" };

/**
 * The state of an agent: one that asked a person waits, whatever else it does.
 * @param {any[]} rows those of `status` about it
 * @param {string | null | undefined} status its own
 */
export const stateOf = (rows, status) => (rows.some((row) => row.waiting_for.includes("you")) ? "waiting_for_input" : status ?? "crashed");

/**
 * The rows of `status` by agent, so that one that holds several tasks is told of once; a task whose
 * holder is not known stands alone.
 * @param {any[]} rows
 * @returns {any[][]}
 */
export function groupByAgent(rows) {
  /** @type {Map<string, any[]>} */
  const groups = new Map();
  for (const row of rows) {
    const key = row.agent_id ?? row.task_id;
    const found = groups.get(key);
    if (found) found.push(row);
    else groups.set(key, [row]);
  }
  return [...groups.values()];
}

/**
 * @param {any[]} rows of one agent, in the order in which they count
 * @param {string} none what is said of an agent without a task
 */
export function drawTasks(rows, none) {
  const tasks = rows.filter((row) => row.task);
  if (!tasks.length) return h("span", { class: "mute what" }, none);
  return h(
    "span",
    { class: "what", title: tasks.map((each) => each.task).join("\n") },
    h("a", { href: `/task/${tasks[0].task_id}` }, tasks[0].task),
    tasks.length > 1 && h("span", { class: "mute" }, ` and ${tasks.length - 1} more`),
  );
}
