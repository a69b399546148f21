// The commits of this repository that wait for the person's grade. A grade is given once and stays,
// so it is chosen first and then given, with a note if one is written.

import { h } from "../../parts/dom.js";
import { ago, exact } from "../../parts/format.js";
import { notify } from "../../parts/notices.js";
import { call } from "../../parts/rpc.js";

/** @typedef {{ agent: string, project: string, commit_hash: string, task: string, at: string, agent_grade: number | null }} Ungraded */

export const GRADES = ["bad", "neutral", "good", "excellent"];
const VALUES = /** @type {Record<string, string>} */ ({ "-1": "bad", 1: "neutral", 2: "good", 5: "excellent" });
const SHOWN = 20;

/** @param {number} value */
export const gradeName = (value) => VALUES[String(value)] ?? String(value);

/** @param {Ungraded} commit */
const keyOf = (commit) => `${commit.agent} ${commit.commit_hash}`;

/**
 * @param {{ root: HTMLElement, show: () => void, refresh: () => Promise<void> }} page
 */
export function createGrading({ root, show, refresh }) {
  /** @type {Ungraded[]} */
  let waiting = [];
  let isMore = false;
  let count = 0;
  let chosen = "";
  /** What was chosen for each commit and not given yet. @type {Map<string, string>} */
  const picked = new Map();
  /** @type {Map<string, string>} */
  const notes = new Map();
  /** @type {Map<string, string>} */
  const refusals = new Map();

  const read = () => call("grade", { limit: SHOWN + 1 });

  /** @param {Ungraded[]} found */
  function set(found) {
    // One whose grade was refused stays with the reason, also when it waits no longer.
    const known = new Set(found.map(keyOf));
    const refused = waiting.filter((each) => refusals.has(keyOf(each)) && !known.has(keyOf(each)));
    count = Math.min(found.length, SHOWN);
    waiting = [...refused, ...found.slice(0, SHOWN)];
    isMore = found.length > SHOWN;
    if (!waiting.some((each) => keyOf(each) === chosen)) chosen = waiting.length ? keyOf(waiting[0]) : "";
  }

  /** @param {Ungraded} commit */
  async function give(commit) {
    const key = keyOf(commit);
    const grade = picked.get(key);
    if (!grade) return;
    const note = notes.get(key)?.trim();
    try {
      const given = await call("grade", { agent: commit.agent, commit: commit.commit_hash, user: grade, ...(note ? { user_note: note } : {}) });
      const rest = given.retrospective ? "" : "; its own grade completes the retrospective";
      notify(`Graded ${grade}: ${commit.agent} stands at ${given.standing.communication_score}${rest}.`);
      for (const each of [picked, notes, refusals]) each.delete(key);
      await refresh();
      focusChosen();
    } catch (error) {
      refusals.set(key, /** @type {Error} */ (error).message);
      if (!waiting.some((each) => keyOf(each) === key)) waiting = [commit, ...waiting];
      show();
    }
  }

  /**
   * @param {Ungraded} commit
   * @param {string} grade
   */
  function pick(commit, grade) {
    const key = keyOf(commit);
    chosen = key;
    if (picked.get(key) === grade) picked.delete(key);
    else picked.set(key, grade);
    show();
    find(key)?.querySelector("input")?.focus();
  }

  /** @param {string} key */
  const find = (key) => /** @type {HTMLElement[]} */ ([...root.querySelectorAll(".commit")]).find((each) => each.dataset.key === key);

  function focusChosen() {
    find(chosen)?.focus();
    find(chosen)?.scrollIntoView({ block: "nearest" });
  }

  /** @param {number} step */
  function choose(step) {
    const at = waiting.findIndex((each) => keyOf(each) === chosen);
    const next = waiting[Math.max(0, Math.min(waiting.length - 1, at + step))];
    if (!next) return;
    chosen = keyOf(next);
    show();
    focusChosen();
  }

  /** @param {Ungraded} commit */
  function drawCommit(commit) {
    const key = keyOf(commit);
    const grade = picked.get(key);
    const refusal = refusals.get(key);
    return h(
      "li",
      { key, class: key === chosen ? "commit chosen" : "commit", "data-key": key, tabindex: "-1" },
      h(
        "div",
        { class: "title" },
        h("b", null, commit.agent),
        h("span", { class: "subject" }, commit.task),
        h("code", { class: "mute" }, commit.commit_hash.slice(0, 8)),
        h("time", { datetime: commit.at, title: exact(commit.at) }, `${ago(commit.at)} ago`),
      ),
      h(
        "div",
        { class: "buttons", role: "group", "aria-label": `Your grade of ${commit.task}` },
        GRADES.map((each, at) =>
          h(
            "button",
            { key: each, "aria-pressed": String(grade === each), onclick: () => pick(commit, each) },
            key === chosen && h("kbd", { "aria-hidden": "true" }, at + 1),
            each,
          ),
        ),
        commit.agent_grade !== null && h("span", { class: "mute" }, `${gradeName(commit.agent_grade)} by itself`),
      ),
      grade &&
        h(
          "form",
          {
            key: "give",
            class: "give",
            onsubmit: (/** @type {Event} */ event) => {
              event.preventDefault();
              give(commit);
            },
          },
          h("input", {
            "aria-label": `Your note on ${commit.task}`,
            placeholder: "Your note, if you have one",
            oninput: (/** @type {Event} */ event) => notes.set(key, /** @type {HTMLInputElement} */ (event.currentTarget).value),
            onkeydown: (/** @type {KeyboardEvent} */ event) => {
              if (event.key !== "Escape") return;
              picked.delete(key);
              show();
              focusChosen();
            },
          }),
          h("button", { type: "submit", class: "strong" }, `Grade ${grade}`),
          h("span", { class: "mute" }, "It is given once and stays."),
        ),
      refusal &&
        h(
          "p",
          { class: "trouble", role: "alert" },
          refusal,
          " ",
          h("button", { class: "quiet", onclick: () => (picked.delete(key), refusals.delete(key), refresh()) }, "Close"),
        ),
    );
  }

  function drawSection() {
    return h(
      "section",
      { key: "grading", "aria-labelledby": "grading-title" },
      h("h2", { id: "grading-title" }, "Commits of this repository without your grade ", count > 0 && h("span", { class: "mute" }, isMore ? `the last ${SHOWN}` : count)),
      waiting.length
        ? h("ul", { class: "commits" }, waiting.map(drawCommit), isMore && h("li", { key: "more", class: "mute" }, "and more. ", h("code", null, "herdbook grade --limit 100")))
        : h("p", { class: "mute" }, "No commit waits for your grade; commits are counted where git has the hooks. ", h("code", null, "herdbook hooks install git")),
    );
  }

  /** @type {Record<string, () => void>} */
  const keys = { j: () => choose(1), k: () => choose(-1) };
  for (const [at, grade] of GRADES.entries()) {
    keys[String(at + 1)] = () => {
      const commit = waiting.find((each) => keyOf(each) === chosen);
      if (commit) pick(commit, grade);
    };
  }
  return { read, set, draw: drawSection, keys };
}
