// Lanes: who held which task from when to when. A row for each agent, worktree or phase, bars for
// what it held, dots for questions, ticks for commits, and a line for now. Drag to zoom.

import { draw, h } from "../../parts/dom.js";
import { clockTime, duration, many, short } from "../../parts/format.js";
import { clock } from "../../parts/moment.js";
import { call } from "../../parts/rpc.js";
import { createStillness, showOwnChange } from "../../parts/stillness.js";
import { createTurns } from "../../parts/turns.js";
import { countNew, describe, isSame, keepPlaces } from "./bars.js";
import { drawLanes } from "./drawing.js";
import { drawLegend, drawList } from "./list.js";
import { makeScale } from "./scale.js";

/** @import { Page, Place } from "../../page_table.js" */
/** @import { Lane, Span } from "./bars.js" */
/** @import { Scale, Times } from "./scale.js" */

const HOUR = 3600000;
const LASTS = /** @type {Record<string, number>} */ ({ "1h": HOUR, "8h": 8 * HOUR, "24h": 24 * HOUR, "7d": 168 * HOUR, "30d": 720 * HOUR });
const USUAL = "8h";
const GROUPS = ["agent", "worktree", "phase"];
const NOBODY = /** @type {Record<string, string>} */ ({ agent: "nobody known", worktree: "no worktree known", phase: "without a phase" });
const PAGE = 100;
const MOST = 1000;
const LEAST = 1000;
const narrow = matchMedia("(max-width: 640px)");

/**
 * @param {Place} place
 * @returns {Page}
 */
export function open({ root, query, go, replace }) {
  /** @type {any} */
  let answer = null;
  /** All that was read, while it would move what is shown. @type {any} */
  let waiting = null;
  let group = GROUPS.includes(query.get("group") ?? "") ? /** @type {string} */ (query.get("group")) : GROUPS[0];
  let last = (query.get("last") ?? "") in LASTS ? /** @type {string} */ (query.get("last")) : USUAL;
  /** The window that was zoomed to; without one, the last hours. @type {Times | null} */
  let zoom = readZoom(query);
  let isFolded = query.get("idle") !== "1";
  let isList = query.get("view") === "list";
  let limit = PAGE;
  /** @type {Span | null} */
  let chosen = null;
  /** The scale that stays while the pointer is on the drawing. @type {Scale | null} */
  let kept = null;
  /** @type {{ from: number, to: number } | null} */
  let brush = null;
  const view = { top: 0, height: 600 };
  /** The box of the drawing, which is another one after the list was shown. @type {Element | null} */
  let box = null;

  const page = {
    refresh,
    tick: () => show(),
    area: "work",
    pause: 0,
    keys: /** @type {Record<string, () => void>} */ ({
      "+": () => zoomBy(0.5),
      "=": () => zoomBy(0.5),
      w: () => zoomBy(0.5),
      "-": () => zoomBy(2),
      s: () => zoomBy(2),
      a: () => pan(-0.25),
      d: () => pan(0.25),
      ArrowLeft: () => pan(-0.25),
      ArrowRight: () => pan(0.25),
      0: () => setWindow(null),
      i: () => setFolded(!isFolded),
      v: () => setList(!isList),
      j: () => chooseLane(1),
      k: () => chooseLane(-1),
      h: () => chooseBar(-1),
      l: () => chooseBar(1),
      Enter: () => openSpan(chosen),
    }),
    help: /** @type {[string, string][]} */ ([
      ["+ −", "zoom in, out"],
      ["← →", "earlier, later"],
      ["0", "back to now"],
      ["j k", "next, previous lane"],
      ["h l", "previous, next bar"],
      ["Enter", "open its task"],
      ["i", "show or fold idle"],
      ["v", "bars or a list"],
    ]),
  };

  const begin = createTurns();
  const still = createStillness({ root, refresh, release, isBusy: () => brush !== null });

  async function refresh() {
    const isLast = begin();
    /** @type {Record<string, any>} */
    const params = { group, limit };
    if (zoom) {
      params.from = new Date(zoom.since).toISOString();
      params.to = new Date(zoom.until).toISOString();
    } else params.from = new Date(clock() - LASTS[last]).toISOString();
    const began = performance.now();
    const found = await call("lanes", params);
    if (!isLast()) return;
    waiting = still.mustWait() && answer?.lanes.length ? found : null;
    answer = waiting ? { ...answer, now: found.now, lanes: keepPlaces(answer.lanes, found.lanes) } : found;
    // Where much has to be read, it is read less often, so that others are served as well.
    page.pause = Math.min(30000, Math.round((performance.now() - began) * 4));
    if (chosen) chosen = answer.lanes.flatMap((/** @type {Lane} */ each) => each.spans).find((/** @type {Span} */ each) => isSame(each, chosen)) ?? null;
    show();
  }

  /** Show what waits, up to now. */
  function release() {
    answer = waiting ?? answer;
    waiting = kept = null;
    show();
  }

  /** What waits, in words: what came since, or that the time that is shown is over. */
  function tellWaiting() {
    if (!still.isStill()) return "";
    const fresh = waiting ? countNew(answer.lanes, waiting.lanes) : 0;
    if (fresh) return `${fresh} new, show`;
    return !zoom && !isList && kept && kept.x(clock()) > kept.width + 1 ? "paused, show now" : "";
  }

  /** The window that is shown: it goes on with the clock unless one was zoomed to. @returns {Times} */
  function times() {
    if (zoom) return zoom;
    const until = Math.max(clock(), Date.parse(answer.now));
    return { since: until - LASTS[last], until };
  }

  function keepAddress() {
    const asked = new URLSearchParams();
    if (group !== GROUPS[0]) asked.set("group", group);
    if (zoom) {
      asked.set("from", new Date(zoom.since).toISOString());
      asked.set("to", new Date(zoom.until).toISOString());
    } else if (last !== USUAL) asked.set("last", last);
    if (!isFolded) asked.set("idle", "1");
    if (isList) asked.set("view", "list");
    replace(asked.size ? `/lanes?${asked}` : "/lanes");
  }

  /** @param {Times | null} window */
  function setWindow(window) {
    zoom = window && { since: Math.round(window.since), until: Math.round(Math.max(window.until, window.since + LEAST)) };
    kept = null;
    keepAddress();
    return showOwnChange();
  }

  /**
   * @param {number} factor below 1 to see less
   * @param {number} [around] the moment that stays where it is
   */
  function zoomBy(factor, around) {
    const { since, until } = times();
    const middle = around ?? (chosen ? Date.parse(chosen.since) : (since + until) / 2);
    const at = Math.min(Math.max(middle, since), until);
    return setWindow({ since: at - (at - since) * factor, until: Math.min(Math.max(clock(), until), at + (until - at) * factor) });
  }

  /** @param {number} share of the window */
  function pan(share) {
    const { since, until } = times();
    const step = Math.min((until - since) * share, Math.max(0, clock() - until));
    const by = share < 0 ? (until - since) * share : step;
    if (by) setWindow({ since: since + by, until: until + by });
  }

  /** @param {boolean} folded */
  function setFolded(folded) {
    isFolded = folded;
    kept = null;
    keepAddress();
    show();
  }

  /** @param {boolean} list */
  function setList(list) {
    isList = list;
    kept = null;
    keepAddress();
    show();
  }

  /** @returns {Lane[]} */
  const lanes = () => (isFolded ? answer.lanes.filter((/** @type {Lane} */ each) => each.spans.length || each.marks.length) : answer.lanes);

  /** @param {Lane} lane */
  const nameOf = (lane) => lane.name ?? (lane.id ? short(lane.id) : NOBODY[group]);

  /** @param {number} step */
  function chooseLane(step) {
    const all = lanes();
    if (!all.length) return;
    const at = chosen ? all.findIndex((lane) => lane.spans.some((each) => isSame(each, chosen))) : -1;
    const from = at < 0 ? (step > 0 ? -1 : all.length) : at;
    let next = from + step;
    while (all[next] && !all[next].spans.length) next += step;
    if (!all[next]) return;
    choose(all[next].spans[all[next].spans.length - 1]);
  }

  /** @param {number} step */
  function chooseBar(step) {
    const lane = lanes().find((each) => each.spans.some((span) => isSame(span, chosen)));
    if (!lane) return chooseLane(1);
    const at = lane.spans.findIndex((each) => isSame(each, chosen));
    choose(lane.spans[Math.max(0, Math.min(lane.spans.length - 1, at + step))]);
  }

  /** @param {Span} span */
  function choose(span) {
    chosen = span;
    show();
    root.querySelector(".lane.chosen")?.scrollIntoView({ block: "nearest" });
  }

  /** @param {Span | null | undefined} span */
  function openSpan(span) {
    if (span?.task_id) go(`/task/${span.task_id}`);
    else if (span?.agent_id) go(`/agents/${span.agent_id}`);
  }

  const names = () => (narrow.matches ? 112 : 168);

  function width() {
    const box = root.clientWidth || /** @type {HTMLElement} */ (document.getElementById("main")).clientWidth - (narrow.matches ? 24 : 32);
    return Math.max(160, box - names() - 14);
  }

  function scaleOf() {
    if (kept && still.isStill() && kept.width === width()) return kept;
    const gaps = isFolded ? answer.gaps.map((/** @type {any} */ each) => ({ since: Date.parse(each.since), until: Date.parse(each.until) })) : [];
    const window = times();
    const edge = gaps.find((/** @type {Times} */ each) => each.since <= Date.parse(answer.since));
    if (edge) edge.since = Math.min(edge.since, window.since);
    kept = makeScale(window, gaps, width());
    return kept;
  }

  function drawDrawing() {
    const scale = scaleOf();
    return drawLanes({
      lanes: lanes(),
      scale,
      view,
      names: names(),
      now: Math.max(clock(), Date.parse(answer.now)),
      known: Date.parse(answer.known_since) > Date.parse(answer.since) + 1000 ? Date.parse(answer.known_since) : null,
      isByAgent: group === "agent",
      total: answer.spans,
      chosen,
      brush,
      nameOf,
      show,
      openSpan,
      zoomBy,
      move: (part) => {
        brush = part;
        show();
      },
      brushed: (from, to) => {
        // The click that follows belongs to the drag.
        setTimeout(() => (brush = null));
        setWindow({ since: scale.moment(from), until: scale.moment(to) });
      },
    });
  }

  const unknown = () => `Nothing is known before ${clockTime(answer.known_since)}: ${answer.cut ? "there was too much to read" : "the journal begins there"}.`;

  function drawControls() {
    const shown = lanes();
    const busy = answer.total - answer.idle;
    const total = isFolded ? busy : answer.total;
    const count = shown.length < total ? `${shown.length} of ${many(total, group)}` : many(total, group);
    const idle = isFolded && answer.idle ? `, ${answer.idle} more idle` : "";
    return [
      h(
        "div",
        { key: "filter", class: "filter" },
        h("h1", null, "Lanes ", h("span", { class: "mute" }, `${count}${idle}`)),
        h(
          "select",
          { key: "group", "aria-label": "A lane for each", onchange: (/** @type {Event} */ event) => {
            group = /** @type {HTMLSelectElement} */ (event.currentTarget).value;
            limit = PAGE;
            chosen = null;
            keepAddress();
            showOwnChange();
          } },
          GROUPS.map((each) => h("option", { key: each, value: each, selected: each === group }, `by ${each}`)),
        ),
        h(
          "select",
          { key: "last", "aria-label": "Window of time", onchange: (/** @type {Event} */ event) => {
            const value = /** @type {HTMLSelectElement} */ (event.currentTarget).value;
            if (!(value in LASTS)) return;
            last = value;
            setWindow(null);
          } },
          zoom && h("option", { key: "zoom", value: "zoom", selected: true }, `${clockTime(new Date(zoom.since).toISOString())} – ${clockTime(new Date(zoom.until).toISOString())}`),
          Object.keys(LASTS).map((each) => h("option", { key: each, value: each, selected: !zoom && each === last }, `last ${each}`)),
        ),
        h(
          "div",
          { class: "zooms", role: "group", "aria-label": "Zoom" },
          h("button", { class: "quiet", "aria-label": "Earlier", title: "←", onclick: () => pan(-0.5) }, "←"),
          h("button", { class: "quiet", "aria-label": "Zoom out", title: "−", onclick: () => zoomBy(2) }, "−"),
          h("button", { class: "quiet", "aria-label": "Zoom in", title: "+", onclick: () => zoomBy(0.5) }, "+"),
          h("button", { class: "quiet", "aria-label": "Later", title: "→", onclick: () => pan(0.5) }, "→"),
          zoom && h("button", { key: "now", class: "quiet", title: "0", onclick: () => setWindow(null) }, "Now"),
        ),
        h("button", { class: "quiet", "aria-pressed": String(!isFolded), title: "i", onclick: () => setFolded(!isFolded) }, "Show idle"),
        h("button", { class: "quiet", "aria-pressed": String(isList), title: "v", onclick: () => setList(!isList) }, "As a list"),
      ),
    ];
  }

  function more() {
    limit = Math.min(MOST, limit + PAGE);
    return showOwnChange();
  }

  function show() {
    if (!answer) return;
    const isEmpty = !lanes().length;
    const left = (isFolded ? answer.total - answer.idle : answer.total) - lanes().length;
    const isCut = Date.parse(answer.known_since) > Date.parse(answer.since) + 1000;
    const { since, until } = times();
    const parts = isEmpty || isList ? null : drawDrawing();
    draw(root, [
      ...drawControls(),
      still.draw(
        tellWaiting(),
        isEmpty &&
          h("p", { key: "none", class: "calm" }, `Nobody held anything in ${zoom ? "this time" : `the last ${duration((until - since) / 1000)}`}. `, h("code", null, "herdbook claim --agent brisk-otter")),
        !isEmpty && isList && drawList(lanes(), nameOf, clock(), show),
        parts?.drawing,
      ),
      left > 0 && limit < MOST && h("p", { key: "more", class: "more" }, h("button", { class: "quiet", onclick: more }, `${many(left, group)} more`)),
      isCut && h("p", { key: "unknown", class: "mute" }, unknown()),
      !isEmpty && h("p", { key: "chosen", class: "detail", role: "status" }, chosen ? [describe(chosen, clock()), chosen.task_id && [" ", h("a", { href: `/task/${chosen.task_id}` }, "open")]] : drawLegend()),
    ]);
    if (!root.isConnected) return;
    parts?.paint(root);
    if (settleView()) requestAnimationFrame(show);
  }

  /** Let a new box of the drawing be where the last one was; returns whether more of it can be seen than was drawn. */
  function settleView() {
    const found = root.querySelector(".drawing-box");
    if (!found?.clientHeight) return false;
    if (found !== box) {
      box = found;
      found.scrollTop = view.top;
    }
    const isMore = found.clientHeight > view.height || found.scrollTop !== view.top;
    view.top = found.scrollTop;
    view.height = found.clientHeight;
    return isMore;
  }

  new ResizeObserver(() => {
    if (root.isConnected) show();
  }).observe(root);
  return page;
}

/**
 * The window of the address, if it names one.
 * @param {URLSearchParams} query
 * @returns {Times | null}
 */
function readZoom(query) {
  const [since, until] = ["from", "to"].map((each) => Date.parse(query.get(each) ?? ""));
  return since < until ? { since, until } : null;
}
