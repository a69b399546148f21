// The reviews there are: what was handed in, oldest first, then the phases under way.

import { createCut } from "../../parts/cut_list.js";
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
  const cut = createCut(show);

  const begin = createTurns();

  async function refresh() {
    const isLast = begin();
    const found = await call("review.queue");
    if (!isLast()) return;
    entries = found;
    if (!entries.some((each) => each.id === chosen)) chosen = entries[0]?.id ?? "";
    show();
  }

  const waiting = () => entries.filter((each) => each.is_waiting);
  const others = () => entries.filter((each) => !each.is_waiting);

  /** @param {number} step */
  function choose(step) {
    const shown = [...cut.first("waiting", waiting()), ...cut.first("others", others())];
    const at = shown.findIndex((each) => each.id === chosen);
    const next = shown[Math.max(0, Math.min(shown.length - 1, at + step))];
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
    const [asked, begun] = [waiting(), others()];
    draw(root, [
      h(
        "section",
        { key: "waiting", "aria-labelledby": "waiting-title" },
        h("h1", { id: "waiting-title" }, "To review ", asked.length > 0 && h("b", { class: "count" }, asked.length)),
        asked.length
          ? h("ol", null, cut.rows("waiting", asked, drawEntry))
          : h("p", { class: "calm" }, "Nothing waits for a review. ", h("code", null, "herdbook review diff PHASE"), " shows what was done so far."),
      ),
      begun.length > 0 &&
        h(
          "section",
          { key: "others", "aria-labelledby": "others-title" },
          h("h2", { id: "others-title" }, "Under way ", h("span", { class: "mute" }, begun.length)),
          h("ol", null, cut.rows("others", begun, drawEntry)),
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
