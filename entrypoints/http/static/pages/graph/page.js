// The graph: waves from left to right, phases from top to bottom. The server says where each task
// stands, and in which order so many agents would pick them up; what is chosen lights what it waits
// for and what waits for it.

import { createCut } from "../../parts/cut_list.js";
import { draw, h } from "../../parts/dom.js";
import { many, MARKS } from "../../parts/format.js";
import { call, Refusal } from "../../parts/rpc.js";
import { createTurns } from "../../parts/turns.js";
import { boxOf, drawingSize, drawTasks, foldPhases } from "./drawing.js";
import { viewOf } from "./zoom.js";

/** @import { Page, Place } from "../../page_table.js" */
/** @import { Plan, GraphTask } from "./drawing.js" */

/** Above so many tasks a drawing shows one phase at a time. */
const MOST = 500;
/** Above so many tasks all phases begin folded. */
const FOLDED = 200;

/**
 * @param {Place} place
 * @returns {Page}
 */
export function open({ root, query, replace }) {
  /** @type {Plan} */
  let plan = { waves: 0, tasks: [], phases: [], critical_path: [], layout: { bands: [], spots: {}, columns: 0, rows: 0 } };
  let phase = query.get("phase") ?? "";
  let focus = query.get("focus") ?? "";
  let agents = Number(query.get("agents")) || 0;
  let size = 0;
  let refusal = "";
  let isList = query.get("as") === "list";
  /** The phases that are folded; null until the first plan says how many tasks there are. @type {Set<string> | null} */
  let folded = null;
  /** @type {any[]} */
  let phases = [];
  const view = viewOf(root, () => show());

  const cut = createCut(show);
  const begin = createTurns();

  async function refresh() {
    const isLast = begin();
    const read = await readPlan();
    if (!isLast()) return;
    ({ size, phases, refusal, phase } = read);
    plan = read.found ?? plan;
    const isFirst = !folded;
    folded ??= foldMany();
    show();
    // What has just been drawn may have no place in the window yet.
    if (isFirst && focus) requestAnimationFrame(() => view.reveal(focus));
  }

  /** The phases that are folded at first: of many, all but that of the chosen task. */
  function foldMany() {
    if (phase || size <= FOLDED) return new Set();
    const own = plan.tasks.find((each) => each.id === focus)?.phase_id;
    return new Set(plan.layout.bands.filter((each) => each.id !== own).map((each) => each.id ?? ""));
  }

  /** Read the plan, or that of one phase if there are too many tasks. */
  async function readPlan() {
    /** @type {any} */
    let whole = null;
    /** @type {any[]} */
    let phases = [];
    let size = 0;
    let refusal = "";
    let chosen = phase;
    const asked = { layout: true, ...(agents ? { agents } : {}) };
    try {
      whole = await call("plan", asked);
      size = whole.tasks.length;
      const left = new Set(whole.tasks.map((/** @type {any} */ each) => each.phase_id));
      phases = whole.phases.filter((/** @type {any} */ each) => left.has(each.id));
    } catch (error) {
      // The plan has more tasks than the server draws at once; one of its phases may have fewer.
      if (!(error instanceof Refusal) || error.data?.field !== "plan") throw error;
      const { tasks } = await call("board", { limit: 1 });
      size = Object.entries(tasks).reduce((sum, [state, each]) => sum + (state === "completed" ? 0 : each), 0);
      const progress = await call("progress");
      phases = progress.phases.filter((/** @type {any} */ each) => each.id !== null && each.done < each.total);
      if (!phases.length) refusal = error.message;
    }
    if (!chosen && size > MOST && phases.length) chosen = (await phaseOfFocus(whole)) ?? phases[0].id;
    /** @type {Plan | null} */
    const found = chosen ? await call("plan", { phase: chosen, ...asked }) : whole;
    return { found, size, phases, refusal, phase: chosen };
  }

  /**
   * The phase of the chosen task; null if there is none, or it is finished or gone.
   * @param {any} whole the plan, if it could be read as a whole
   * @returns {Promise<string | null>}
   */
  async function phaseOfFocus(whole) {
    if (!focus) return null;
    if (whole) return whole.tasks.find((/** @type {any} */ each) => each.id === focus)?.phase_id ?? null;
    try {
      const found = await call("task.show", { id: focus });
      return found.state === "completed" ? null : found.phase_id;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return null; // it is gone
    }
  }

  /** The chosen task, all that it waits for, and all that waits for it. @returns {Set<string> | null} */
  function near() {
    if (!plan.layout.spots[focus]) return null;
    /** @type {Map<string, string[]>} */
    const before = new Map(plan.tasks.map((each) => [each.id, each.after]));
    /** @type {Map<string, string[]>} */
    const behind = new Map();
    for (const [id, others] of before) for (const other of others) behind.set(other, [...(behind.get(other) ?? []), id]);
    const found = new Set([focus]);
    for (const way of [before, behind]) {
      const left = [focus];
      while (left.length) {
        for (const other of way.get(/** @type {string} */ (left.pop())) ?? []) {
          if (!found.has(other)) left.push(other);
          found.add(other);
        }
      }
    }
    return found;
  }

  /** @param {string} id */
  function choose(id) {
    focus = focus === id ? "" : id;
    keepAddress();
    show();
  }

  function keepAddress() {
    const parts = { phase, focus, agents: agents ? String(agents) : "", as: isList ? "list" : "" };
    const asked = new URLSearchParams(Object.entries(parts).filter(([, value]) => value));
    replace(asked.size ? `/graph?${asked}` : "/graph");
  }

  /** @param {string} id */
  function fold(id) {
    if (folded?.has(id)) folded.delete(id);
    else folded?.add(id);
    show();
  }

  /** @param {number} number */
  function setAgents(number) {
    agents = Math.max(0, Math.min(100, number));
    keepAddress();
    refresh();
  }

  function showList() {
    isList = !isList;
    keepAddress();
    show();
  }

  /** The step in which each task would be picked up, and its place in the order of all. */
  function pickUps() {
    /** @type {Map<string, { step: number, place: number }>} */
    const found = new Map();
    plan.pick_up?.steps.forEach((step, at) => step.forEach((id) => found.set(id, { step: at + 1, place: found.size + 1 })));
    return found;
  }

  function controls() {
    const chosen = plan.tasks.find((each) => each.id === focus);
    const title = plan.tasks.length === size ? `${many(size, "task")} in ${many(plan.waves ?? 0, "wave")}` : `${plan.tasks.length.toLocaleString("en")} of ${many(size, "task")}`;
    return h(
      "div",
      { key: "filter", class: "filter" },
      h("h1", null, "Graph ", h("span", { class: "mute" }, title)),
      phases.length > 1 &&
        h(
          "select",
          {
            "aria-label": "Phase",
            onchange: (/** @type {Event} */ event) => {
              phase = /** @type {HTMLSelectElement} */ (event.currentTarget).value;
              folded = null;
              keepAddress();
              refresh();
            },
          },
          size <= MOST && h("option", { key: "", value: "", selected: !phase }, "all phases"),
          phases.map((each) => h("option", { key: each.id, value: each.id, selected: each.id === phase }, [each.name, each.initiative].filter(Boolean).join(" · "))),
        ),
      h(
        "label",
        { class: "agents-asked", title: "In which order so many agents would pick up the tasks" },
        h("span", { class: "mute" }, "Forecast for "),
        h("input", {
          type: "number",
          min: "0",
          max: "100",
          value: agents || "",
          placeholder: "–",
          "aria-label": "Forecast for so many agents",
          onchange: (/** @type {Event} */ event) => setAgents(Number(/** @type {HTMLInputElement} */ (event.currentTarget).value)),
        }),
        h("span", { class: "mute" }, " agents"),
      ),
      h("button", { class: "quiet", onclick: showList, "aria-pressed": isList ? "true" : "false" }, "As a list"),
      !isList && view.buttons(),
      chosen && h("span", null, "Chosen: ", h("a", { class: "about-task", href: `/task/${chosen.id}` }, chosen.name)),
    );
  }

  /**
   * @param {string} id
   * @param {Map<string, string>} names
   */
  const link = (id, names) => h("a", { key: id, href: `/task/${id}` }, names.get(id));

  /** What the forecast says in words. */
  function forecast() {
    const found = plan.pick_up;
    if (!found) return null;
    const names = new Map(plan.tasks.map((each) => [each.id, each.name]));
    const freed = focus ? found.frees[focus] ?? [] : [];
    return h(
      "p",
      { key: "forecast", class: "forecast" },
      `With ${many(found.agents, "agent")}: ${many(found.steps.length, "step")}, if all tasks were equally long. `,
      found.next ? ["The next claim gives ", link(found.next, names), ". "] : "Nothing can be claimed at this moment. ",
      found.stuck.length > 0 && `${many(found.stuck.length, "task")} wait${found.stuck.length === 1 ? "s" : ""} for a person to decide. `,
      focus && names.has(focus) && [freed.length ? ["Finishing ", link(focus, names), ` frees ${freed.map((id) => names.get(id)).join(", ")}.`] : ["Finishing ", link(focus, names), " alone frees nothing."]],
    );
  }

  /** The same as a list: by phase, with what each task waits for in words. */
  function list() {
    const names = new Map(plan.tasks.map((each) => [each.id, each.name]));
    const order = pickUps();
    const stuck = new Set(plan.pick_up?.stuck);
    return h(
      "div",
      { key: "list", class: "graph-list" },
      plan.layout.bands.map((band) =>
        h(
          "section",
          { key: band.id ?? "", "aria-label": titleOf(band.id) },
          h("h2", null, titleOf(band.id)),
          h(
            "ul",
            { class: "related" },
            cut.rows(band.id ?? "", plan.tasks.filter((each) => each.phase_id === band.id), (each) =>
              h(
                "li",
                { key: each.id },
                h("span", { class: `mark ${each.state}`, "aria-hidden": "true" }, MARKS[each.state]),
                h("a", { href: `/task/${each.id}` }, each.name),
                h("span", { class: "mute" }, words(each, names, order, stuck)),
              ),
            ),
          ),
        ),
      ),
    );
  }

  /**
   * @param {GraphTask} task
   * @param {Map<string, string>} names
   * @param {Map<string, { step: number, place: number }>} order
   * @param {Set<string>} stuck
   */
  function words(task, names, order, stuck) {
    const after = task.after.map((id) => names.get(id)).filter(Boolean);
    const picked = order.get(task.id);
    const when = picked ? `step ${picked.step}` : stuck.has(task.id) ? "waits for a person" : "";
    return [`wave ${task.wave}`, task.state, task.critical ? "critical" : "", when, after.length ? `after ${after.join(", ")}` : ""].filter(Boolean).join(", ");
  }

  /** @param {string | null} id */
  function titleOf(id) {
    const found = plan.phases.find((each) => each.id === id);
    return found ? `${found.name} · ${found.initiative}` : "Without a phase";
  }

  function show() {
    const isDrawn = !refusal && plan.tasks.length > 0 && plan.tasks.length <= MOST;
    draw(root, [
      controls(),
      refusal && h("p", { key: "refusal", class: "trouble" }, refusal, ". ", h("a", { href: "/board" }, "The board lists them.")),
      plan.tasks.length > MOST && h("p", { key: "many", class: "calm" }, "So many tasks are too many to draw. ", h("a", { href: "/board" }, "The board lists them.")),
      isDrawn && forecast(),
      isDrawn && (isList ? list() : drawing()),
      !refusal && !plan.tasks.length && h("p", { key: "none", class: "calm" }, size ? "Nothing is left to do in this phase." : ["Nothing is left to do. ", h("code", null, "herdbook task add 'write the parser'")]),
    ]);
    view.apply();
  }

  function drawing() {
    const shown = foldPhases(plan, folded ?? new Set());
    const { across, down } = drawingSize(shown);
    return h(
      "div",
      { key: "drawing", class: "drawing", tabindex: "0", role: "group", "aria-label": "The plan as a drawing; “As a list” tells the same in words", ...view.handlers },
      h(
        "svg",
        { width: across, height: down, viewBox: `0 0 ${across} ${down}`, "data-across": across, "data-down": down },
        drawTasks(shown, { lit: near(), order: pickUps(), stuck: new Set(plan.pick_up?.stuck), titleOf, fold, choose, focus, folded: folded ?? new Set() }),
      ),
    );
  }

  /** @param {number} step */
  function chooseNext(step) {
    const order = plan.tasks.filter((each) => boxOf(foldPhases(plan, folded ?? new Set()), each.id));
    const at = order.findIndex((each) => each.id === focus);
    const next = order[at < 0 ? 0 : Math.max(0, Math.min(order.length - 1, at + step))];
    if (!next || next.id === focus) return;
    choose(next.id);
    view.reveal(next.id);
  }

  return {
    refresh,
    keys: {
      Escape: () => focus && choose(focus),
      j: () => chooseNext(1),
      k: () => chooseNext(-1),
      "+": () => view.zoom(1),
      "-": () => view.zoom(-1),
      0: () => view.fit(),
      v: showList,
    },
    help: [
      ["j k", "choose the next, the previous task"],
      ["+ - 0", "larger, smaller, all of it; the wheel with Ctrl does it too"],
      ["arrows", "move the drawing, when it has the focus"],
      ["v", "as a list"],
      ["Esc", "choose no task"],
    ],
  };
}
