// One task: its facts, what it waits for and what waits for it, and its changes, each with Undo.

import { createCut } from "../../parts/cut_list.js";
import { draw, h } from "../../parts/dom.js";
import { ago, exact, leaseLeft, MARKS } from "../../parts/format.js";
import { isPast } from "../../parts/moment.js";
import { act, notify } from "../../parts/notices.js";
import { call } from "../../parts/rpc.js";
import { createTurns } from "../../parts/turns.js";

/** @import { Page, Place } from "../../page_table.js" */

const MOVES = ["ready", "blocked", "completed"];
const MARK_OF = /** @type {Record<string, string>} */ ({
  pending: "waiting",
  approved: "ready",
  in_progress: "held",
  pending_review: "review",
});

/** @param {string} state */
const markName = (state) => MARK_OF[state] ?? state;

/**
 * @param {Place} place
 * @returns {Page}
 */
export function open({ root, key, replace, entitle }) {
  /** @type {any} */
  let task = {};
  let refusal = "";
  const cut = createCut(show);

  const begin = createTurns();

  async function refresh() {
    const isLast = begin();
    const found = await call("task.show", { id: key ?? "" });
    if (!isLast()) return;
    task = found;
    // A name or a part of an id led here; the whole id stays true when the name changes.
    if (key !== task.id) replace(`/task/${task.id}`);
    entitle(task.name);
    show();
  }

  /** @param {string} state */
  async function move(state) {
    try {
      await act(`${task.name}: ${state}`, "task.move", { task: task.id, state }, task.id);
      refusal = "";
      await refresh();
    } catch (error) {
      refusal = /** @type {Error} */ (error).message.replace(/^state: /, "");
      show();
    }
  }

  /** @param {number} seq */
  async function undo(seq) {
    try {
      await call("undo", { tx: `#${seq}` });
      notify(`#${seq} was taken back.`);
      await refresh();
    } catch (error) {
      notify(/** @type {Error} */ (error).message, { isRefusal: true });
    }
  }

  /**
   * @param {string} title
   * @param {any[]} rows
   * @param {string} none
   */
  function related(title, rows, none) {
    return h(
      "section",
      { key: title },
      h("h2", null, title, rows.length > 1 && h("span", { class: "mute" }, ` ${rows.length.toLocaleString("en")}`)),
      rows.length
        ? h(
            "ul",
            { class: "related" },
            cut.rows(title, rows, (each) =>
              h(
                "li",
                { key: each.id },
                h("span", { class: `mark ${markName(each.state)}`, "aria-hidden": "true" }, MARKS[markName(each.state)]),
                each.kind === "task" ? h("a", { href: `/task/${each.id}` }, each.name) : h("span", null, `${each.kind} ${each.name}`),
                h("span", { class: "mute" }, each.state.replaceAll("_", " ")),
              ),
            ),
          )
        : h("p", { class: "mute" }, none),
    );
  }

  function show() {
    const facts = [
      ["id", h("code", null, task.id)],
      ["initiative", task.initiative],
      ["phase", task.phase],
      ["holder", task.holder && [task.holder, task.lease_until ? `, ${leaseLeft(task.lease_until)}` : isPast() ? ", lease not known" : ""]],
      ["priority", task.priority],
      ["kind of work", task.category],
      ["labels", task.labels?.join(", ")],
      ["attempts", task.retry_count || null],
      ["parent", task.parent],
      ["added", h("time", { datetime: task.created_at, title: exact(task.created_at) }, `${ago(task.created_at)} ago`)],
    ].filter(([, value]) => value);
    draw(root, [
      h(
        "div",
        { key: "main" },
        h(
          "section",
          { key: "title" },
          h("h1", null, task.name),
          h("p", { class: "mute" }, h("span", { class: `mark ${task.state}`, "aria-hidden": "true" }, MARKS[task.state]), task.state),
          !isPast() && h("div", { class: "buttons" }, MOVES.filter((state) => state !== task.state).map((state) => h("button", { key: state, onclick: () => move(state) }, `Move to ${state}`))),
          refusal && h("p", { class: "trouble", role: "alert" }, refusal),
          h("p", { key: "review" }, h("a", { href: `/review/${task.id}` }, "Look at the diff")),
        ),
        task.description && h("section", { key: "description" }, h("h2", null, "What is to be done"), h("p", { class: "prose" }, task.description)),
        task.acceptance && h("section", { key: "acceptance" }, h("h2", null, "Done when"), h("p", { class: "prose" }, task.acceptance)),
        task.summary && h("section", { key: "summary" }, h("h2", null, "Result"), h("p", { class: "prose" }, task.summary)),
        related("Waits for", task.waits_for, "It waits for nothing."),
        related("Needed by", task.dependents, "Nothing waits for it."),
        task.children.length > 0 && related("Parts", task.children, ""),
      ),
      h(
        "div",
        { key: "side" },
        h("section", { key: "facts" }, h("h2", null, "Facts"), h("dl", { class: "details" }, facts.map(([name, value]) => [h("dt", { key: `${name} name` }, name), h("dd", { key: name }, value)]))),
        h(
          "section",
          { key: "changes" },
          h("h2", null, "Changes ", h("span", { class: "mute" }, task.changes > task.history.length ? `${task.history.length} of ${task.changes}` : task.changes)),
          h(
            "ul",
            { class: "related" },
            [...task.history].reverse().map((each) =>
              h(
                "li",
                { key: each.seq },
                h("span", { class: "prose" }, `${each.what}, by ${each.who ?? "somebody"} `, h("time", { datetime: each.at, title: exact(each.at) }, `${ago(each.at)} ago`)),
                !isPast() && h("button", { class: "quiet", "aria-label": `Undo change ${each.seq}`, onclick: () => undo(each.seq) }, "Undo"),
              ),
            ),
          ),
          task.history_from && h("p", { class: "mute" }, `The journal begins at #${task.history_from}.`),
          h("a", { class: "about-task", href: `/history?q=${encodeURIComponent(task.id)}` }, "All its changes"),
        ),
      ),
    ]);
  }

  return { refresh, tick: show, keys: { e: () => void move("completed") }, help: [["e", "complete the task"]] };
}
