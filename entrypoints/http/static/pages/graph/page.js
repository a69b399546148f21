// The graph: waves from left to right, phases from top to bottom. The server says where each task
// stands; what is chosen lights what it waits for and what waits for it.

import { draw, h } from "../../parts/dom.js";
import { many, MARKS } from "../../parts/format.js";
import { call, Refusal } from "../../parts/rpc.js";

/** @import { Page, Place } from "../../page_table.js" */

const WIDTH = 190;
const HEIGHT = 32;
const ACROSS = 240;
const DOWN = 42;
const HEAD = 26;
const EDGE = 16;
const NAME = 24;
/** Above so many tasks a drawing shows one phase at a time. */
const MOST = 500;

/**
 * @param {Place} place
 * @returns {Page}
 */
export function open({ root, query, replace }) {
  /** @type {any} */
  let plan = { tasks: [], phases: [], layout: { bands: [], spots: {}, columns: 0, rows: 0 } };
  let phase = query.get("phase") ?? "";
  let focus = query.get("focus") ?? "";
  let size = 0;
  let refusal = "";
  /** @type {any[]} */
  let phases = [];

  async function refresh() {
    /** @type {any} */
    let whole = null;
    refusal = "";
    try {
      whole = await call("plan", { layout: true });
      size = whole.tasks.length;
      const left = new Set(whole.tasks.map((/** @type {any} */ each) => each.phase_id));
      phases = whole.phases.filter((/** @type {any} */ each) => left.has(each.id));
    } catch (error) {
      // The plan has more tasks than the server draws at once; one of its phases may have fewer.
      if (!(error instanceof Refusal) || error.data?.field !== "plan") throw error;
      const { tasks } = await call("board", { limit: 1 });
      size = Object.entries(tasks).reduce((sum, [state, each]) => sum + (state === "completed" ? 0 : each), 0);
      phases = await call("phase.list", { limit: 1000 });
      if (!phases.length) refusal = error.message;
    }
    if (!phase && size > MOST && phases.length) phase = phases[0].id;
    if (phase) plan = await call("plan", { phase, layout: true });
    else if (whole) plan = whole;
    show();
  }

  /** @param {string} id */
  function corner(id) {
    const spot = plan.layout.spots[id];
    if (!spot) return null;
    const [column, row] = spot;
    const bands = plan.layout.bands.filter((/** @type {any} */ each) => each.first_row <= row).length;
    return { x: EDGE + column * ACROSS, y: EDGE + row * DOWN + bands * HEAD };
  }

  /** The chosen task, all that it waits for, and all that waits for it. @returns {Set<string> | null} */
  function near() {
    if (!plan.layout.spots[focus]) return null;
    /** @type {Map<string, string[]>} */
    const before = new Map(plan.tasks.map((/** @type {any} */ each) => [each.id, each.after]));
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
    const asked = new URLSearchParams(Object.entries({ phase, focus }).filter(([, value]) => value));
    replace(asked.size ? `/graph?${asked}` : "/graph");
  }

  function show() {
    const { layout, tasks } = plan;
    const lit = near();
    const across = EDGE * 2 + Math.max(1, layout.columns) * ACROSS - (ACROSS - WIDTH);
    const down = EDGE * 2 + layout.rows * DOWN + layout.bands.length * HEAD;
    const names = new Map(plan.phases.map((/** @type {any} */ each) => [each.id, each.name]));
    const chosen = tasks.find((/** @type {any} */ each) => each.id === focus);
    draw(root, [
      h(
        "div",
        { key: "filter", class: "filter" },
        h("h1", null, "Graph ", h("span", { class: "mute" }, tasks.length === size ? `${many(size, "task")} in ${many(plan.waves ?? 0, "wave")}` : `${tasks.length} of ${many(size, "task")}`)),
        phases.length > 1 &&
          h(
            "select",
            {
              "aria-label": "Phase",
              onchange: (/** @type {Event} */ event) => {
                phase = /** @type {HTMLSelectElement} */ (event.currentTarget).value;
                keepAddress();
                refresh();
              },
            },
            size <= MOST && h("option", { key: "", value: "", selected: !phase }, "all phases"),
            phases.map((each) => h("option", { key: each.id, value: each.id, selected: each.id === phase }, each.name)),
          ),
        chosen && h("span", null, "Chosen: ", h("a", { class: "about", href: `/task/${chosen.id}` }, chosen.name)),
      ),
      refusal && h("p", { key: "refusal", class: "trouble" }, refusal, ". ", h("a", { href: "/board" }, "The board lists them.")),
      tasks.length > MOST && h("p", { key: "many", class: "calm" }, "So many tasks are too many to draw. ", h("a", { href: "/board" }, "The board lists them.")),
      tasks.length > MOST || refusal ? null : tasks.length
        ? h(
            "div",
            { key: "drawing", class: "drawing", tabindex: "0", role: "group", "aria-label": "The plan, also as a list on the board" },
            h(
              "svg",
              { width: across, height: down, viewBox: `0 0 ${across} ${down}` },
              layout.bands.map((/** @type {any} */ band, /** @type {number} */ at) => {
                const y = EDGE + band.first_row * DOWN + at * HEAD;
                return [
                  h("line", { key: `line ${band.id}`, class: "band", x1: 0, x2: across, y1: y - 4, y2: y - 4 }),
                  h("text", { key: `phase ${band.id}`, class: "phase", x: EDGE, y: y + 14 }, band.id ? names.get(band.id) ?? "" : "without a phase"),
                ];
              }),
              tasks.flatMap((/** @type {any} */ task) => task.after.map((/** @type {string} */ other) => drawEdge(task, other, lit))),
              tasks.map((/** @type {any} */ task) => drawTask(task, lit)),
            ),
          )
        : h("p", { key: "none", class: "calm" }, "Nothing is left to do. ", h("code", null, "herdbook task add 'write the parser'")),
    ]);
  }

  /**
   * @param {any} task
   * @param {string} other
   * @param {Set<string> | null} lit
   */
  function drawEdge(task, other, lit) {
    const from = corner(other);
    const to = corner(task.id);
    if (!from || !to) return null;
    const isCritical = plan.critical_path.includes(task.id) && plan.critical_path.includes(other);
    const [x, y, toX, toY] = [from.x + WIDTH, from.y + HEIGHT / 2, to.x, to.y + HEIGHT / 2];
    const middle = toX - (ACROSS - WIDTH) / 2;
    const isNear = lit?.has(task.id) && lit.has(other);
    return h("path", {
      key: `${other} ${task.id}`,
      class: `edge${isCritical ? " critical" : ""}${isNear ? " near" : lit ? " far" : ""}`,
      d: `M${x} ${y}H${middle}V${toY}H${toX}`,
    });
  }

  /**
   * @param {any} task
   * @param {Set<string> | null} lit
   */
  function drawTask(task, lit) {
    const place = corner(task.id);
    if (!place) return null;
    const name = task.name.length > NAME ? `${task.name.slice(0, NAME)}…` : task.name;
    return h(
      "a",
      {
        key: task.id,
        href: `/task/${task.id}`,
        "aria-label": `${task.name}, ${task.state}${task.critical ? ", critical" : ""}`,
        class: lit ? (lit.has(task.id) ? "near" : "far") : null,
        onclick: (/** @type {MouseEvent} */ event) => {
          if (focus === task.id) return; // the second click opens it
          event.preventDefault();
          event.stopPropagation();
          choose(task.id);
        },
      },
      h("title", null, `${task.name} (${task.state})`),
      h("rect", { class: "box", x: place.x, y: place.y, width: WIDTH, height: HEIGHT, rx: 4 }),
      h("text", { "aria-hidden": "true", class: `mark ${task.state}`, x: place.x + 8, y: place.y + 20 }, MARKS[task.state]),
      h("text", { "aria-hidden": "true", x: place.x + 26, y: place.y + 20 }, name),
    );
  }

  return { refresh, keys: { Escape: () => focus && choose(focus) }, help: [["Esc", "choose no task"]] };
}
