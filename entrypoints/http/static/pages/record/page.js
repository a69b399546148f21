// Record: which setup works best, how sure that is, and the commits that wait for your grade.

import { draw, h } from "../../parts/dom.js";
import { ago, exact, many } from "../../parts/format.js";
import { call, Refusal } from "../../parts/rpc.js";
import { createTurns } from "../../parts/turns.js";
import { createGrading, gradeName } from "./grading.js";
import { drawInterval, drawMix, drawWeeks, scaleOf } from "./marks.js";

/** @import { Page, Place } from "../../page_table.js" */

const SHOWN = 30;
const LATELY = 10;
const REASONS = /** @type {[string, string][]} */ ([
  ["why", "Why"],
  ["certainty", "How sure"],
  ["change", "What would change it"],
]);

/** @param {any} setup */
const nameOf = (setup) => [setup.provider, setup.model, setup.mode].filter(Boolean).join(" ");

/**
 * @param {Place} place
 * @returns {Page}
 */
export function open({ root, query, replace }) {
  const filters = { language: query.get("language") ?? "", project: query.get("project") ?? "" };
  /** @type {any} */
  let board = null;
  /** @type {any[]} */
  let graded = [];
  let refusal = "";
  let isWhole = false;
  const grading = createGrading({ root, show, refresh });

  const begin = createTurns();

  async function refresh() {
    const isLast = begin();
    // It brings what the hooks have told into the record first, so the list comes after it.
    const ungraded = await grading.read();
    const read = await readBoard();
    if (!isLast()) return;
    grading.set(ungraded);
    ({ board, refusal } = read);
    graded = read.graded ?? graded;
    show();
  }

  async function readBoard() {
    const asked = Object.fromEntries(Object.entries(filters).filter(([, each]) => each));
    try {
      const [found, lately] = await Promise.all([call("leaderboard", asked), call("retro.list", { limit: LATELY })]);
      return { board: found, graded: lately, refusal: "" };
    } catch (error) {
      if (!(error instanceof Refusal) || !error.code || !Object.keys(asked).length) throw error;
      return { board: { ...(await call("leaderboard")), setups: [] }, graded: null, refusal: error.message };
    }
  }

  /**
   * @param {"language" | "project"} name
   * @param {string} value
   */
  async function set(name, value) {
    filters[name] = value;
    const asked = new URLSearchParams(Object.entries(filters).filter(([, each]) => each));
    replace(asked.size ? `/record?${asked}` : "/record");
    await refresh();
  }

  /**
   * @param {"language" | "project"} name
   * @param {string} all
   * @param {any[]} values
   */
  function choice(name, all, values) {
    const known = values.map((each) => each.name);
    const lost = filters[name] && !known.includes(filters[name]) ? [{ name: filters[name], observations: 0 }] : [];
    return h(
      "select",
      { key: name, "aria-label": name, onchange: (/** @type {Event} */ event) => set(name, /** @type {HTMLSelectElement} */ (event.currentTarget).value) },
      h("option", { key: "all", value: "", selected: !filters[name] }, all),
      [...lost, ...values].map((each) =>
        h("option", { key: `of ${each.name}`, value: each.name, selected: each.name === filters[name] }, `${each.name}${each.name === board.here ? ", this repository" : ""} (${each.observations})`),
      ),
    );
  }

  /**
   * @param {any} setup
   * @param {{ low: number, high: number }} scale
   */
  function drawSetup(setup, scale) {
    const merit = setup.merit_interval;
    return h(
      "li",
      { key: nameOf(setup), class: setup.is_enough ? "setup" : "setup thin" },
      h("span", { class: "place mute" }, setup.is_enough ? setup.place : "–"),
      h("span", { class: "what" }, h("b", null, nameOf(setup)), h("span", { class: "mute" }, setup.tells)),
      drawInterval(merit, scale, setup.is_enough),
      h("span", { class: "number", title: `merit ${merit.estimate.toFixed(2)}, with 95% confidence ${merit.low.toFixed(2)} to ${merit.high.toFixed(2)}` }, merit.estimate.toFixed(1), h("span", { class: "mute" }, ` ${merit.low.toFixed(1)} to ${merit.high.toFixed(1)}`)),
      h("span", { class: "seen" }, many(setup.observations, "commit"), h("span", { class: "mute" }, `${setup.grades} graded, ${many(setup.bugs, "bug")}`)),
      drawMix(setup.grade_mix),
      h("span", { class: "trend" }, drawWeeks(setup.weeks), h("span", { class: "mute" }, setup.trend_tells)),
      (setup.evidence_for || setup.evidence_against) &&
        h("details", { class: "evidence" }, h("summary", null, "What was said of it"), quote("for", setup.evidence_for), quote("against", setup.evidence_against)),
    );
  }

  /**
   * @param {string} side
   * @param {any} said
   */
  function quote(side, said) {
    if (!said) return null;
    return h("p", { key: side, class: "prose" }, h("span", { class: "mute" }, `${side}: `), said.note, h("span", { class: "mute" }, ` (${said.project ?? "no project"}, ${ago(said.at)} ago)`));
  }

  function drawBoard() {
    const shown = isWhole ? board.setups : board.setups.slice(0, SHOWN);
    const scale = scaleOf(board.setups);
    return [
      h("div", { key: "titles", class: "setup titles", "aria-hidden": "true" }, ["", "setup", "merit, in grades", "", "seen", "your grades", "weeks"].map((each, at) => h("span", { key: at }, each))),
      h("ol", { key: "setups", class: "setups", "aria-label": "Setups" }, shown.map((/** @type {any} */ each) => drawSetup(each, scale))),
      shown.length < board.setups.length &&
        h("button", { key: "more", onclick: () => ((isWhole = true), show()) }, `and ${board.setups.length - shown.length} more`),
      h("p", { key: "how", class: "mute" }, `${board.explanation.replace("low..high", "The interval")}.`),
    ];
  }

  function drawVerdict() {
    return h(
      "section",
      { key: "verdict", class: "verdict", "aria-labelledby": "verdict-title" },
      h("h1", { id: "verdict-title" }, "Which setup works best ", h("span", { class: "mute" }, `judged by ${board.scope}`)),
      h("div", { class: "filter" }, choice("language", "all languages", board.languages), choice("project", "all projects", board.projects)),
      refusal && h("p", { key: "refusal", class: "trouble", role: "alert" }, refusal),
      board.setups.length > 0 && h("p", { key: "words", class: "words" }, board.verdict === "too_little_data" && h("b", null, "Too little to tell. "), `${board.words}.`),
      board.setups.length > 0 &&
        h("dl", { key: "reasons", class: "details" }, REASONS.map(([name, title]) => [h("dt", { key: `${name} name` }, title), h("dd", { key: name }, board.reasons[name])])),
      board.setups.length > 0 && drawBoard(),
      !board.setups.length && !refusal && h("p", { key: "none", class: "calm" }, "The record holds no work of any setup yet. ", h("code", null, "herdbook hooks install git")),
    );
  }

  /** @param {any} retro */
  function drawGraded(retro) {
    return h(
      "li",
      { key: retro.id },
      h("code", { class: "mute" }, retro.commit_hash.slice(0, 8)),
      h("span", { class: "said-of" }, h("b", null, retro.agent), ` ${retro.task}`, (retro.user_note || retro.agent_note) && h("span", { class: "mute" }, ` “${retro.user_note || retro.agent_note}”`)),
      h("span", { class: "mute" }, `${gradeName(retro.agent_grade)} by itself, ${gradeName(retro.user_grade)} by you; score ${retro.score_before} to ${retro.score_after}`),
      h("time", { datetime: retro.at, title: exact(retro.at) }, `${ago(retro.at)} ago`),
    );
  }

  function show() {
    if (!board) return;
    draw(root, [
      drawVerdict(),
      grading.draw(),
      graded.length > 0 &&
        h("section", { key: "lately", "aria-labelledby": "lately-title" }, h("h2", { id: "lately-title" }, "Graded by both lately"), h("ul", { class: "lately" }, graded.map(drawGraded))),
    ]);
  }

  return {
    refresh,
    tick: show,
    area: "record",
    pause: 2000,
    keys: grading.keys,
    help: [
      ["j k", "next, previous commit to grade"],
      ["1–4", "bad, neutral, good, excellent; Enter gives the grade"],
    ],
  };
}
