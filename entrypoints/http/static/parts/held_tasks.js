// What an agent holds, in one cell: its first task, and how many more there are.

import { h } from "./dom.js";

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
