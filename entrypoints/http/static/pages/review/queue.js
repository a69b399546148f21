// The reviews there are: what was handed in, oldest first, then the phases under way.

import { draw, h } from "../../parts/dom.js";
import { ago, exact, many } from "../../parts/format.js";
import { call } from "../../parts/rpc.js";
import { createTurns } from "../../parts/turns.js";

/** @import { Page, Place } from "../../page_table.js" */
/**
 * @typedef {{ kind: string, id: string, name: string, status: string, since: string, initiative: string | null, agents: string[],
 *   threads: number, open_threads: number, is_waiting: boolean, steps: any[] }} Entry
 */

/**
 * @param {Place} place
 * @returns {Page}
 */
export function openQueue({ root, go }) {
  /** @type {Entry[]} */
  let entries = [];
  let chosen = "";

  const begin = createTurns();

  async function refresh() {
    const isLast = begin();
    const found = await call("review.queue");
    if (!isLast()) return;
    entries = found;
    if (!entries.some((each) => each.id === chosen)) chosen = entries[0]?.id ?? "";
    show();
  }

  /** @param {number} step */
  function choose(step) {
    const at = entries.findIndex((each) => each.id === chosen);
    const next = entries[Math.max(0, Math.min(entries.length - 1, at + step))];
    if (!next) return;
    chosen = next.id;
    show();
    /** @type {HTMLElement | null} */ (root.querySelector(".chosen a"))?.focus();
  }

  /** @param {Entry} each */
  function drawEntry(each) {
    const said = [each.kind, each.initiative !== each.name && each.initiative, each.agents.join(", ") || "nobody known"];
    return h(
      "li",
      { key: each.id, class: `review-entry${each.is_waiting ? " waits" : ""}${each.id === chosen ? " chosen" : ""}` },
      h("span", { class: each.is_waiting ? "mark waiting_for_input" : "mark held", "aria-hidden": "true" }, each.is_waiting ? "!" : "◐"),
      h("a", { href: `/review/${each.id}`, onfocus: () => (chosen = each.id) }, each.name),
      h("span", { class: "mute said" }, said.filter(Boolean).join(" · ")),
      h("span", { class: "mute comments" }, each.threads > 0 && `${each.open_threads} of ${many(each.threads, "comment")} open`),
      h("time", { datetime: each.since, title: exact(each.since) }, ago(each.since)),
    );
  }

  function show() {
    const waiting = entries.filter((each) => each.is_waiting);
    const others = entries.filter((each) => !each.is_waiting);
    draw(root, [
      h(
        "section",
        { key: "waiting", "aria-labelledby": "waiting-title" },
        h("h1", { id: "waiting-title" }, "To review ", waiting.length > 0 && h("b", { class: "count" }, waiting.length)),
        waiting.length
          ? h("ol", null, waiting.map(drawEntry))
          : h("p", { class: "calm" }, "Nothing waits for a review. ", h("code", null, "herdbook review diff PHASE"), " shows what was done so far."),
      ),
      others.length > 0 &&
        h(
          "section",
          { key: "others", "aria-labelledby": "others-title" },
          h("h2", { id: "others-title" }, "Under way ", h("span", { class: "mute" }, others.length)),
          h("ol", null, others.map(drawEntry)),
        ),
    ]);
  }

  return {
    refresh,
    tick: show,
    area: "work",
    keys: {
      j: () => choose(1),
      k: () => choose(-1),
      Enter: () => chosen && go(`/review/${chosen}`),
    },
    help: [
      ["j k", "next, previous"],
      ["Enter", "open the review"],
    ],
  };
}
