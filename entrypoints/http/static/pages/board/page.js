// The board: a column for each state with true totals, or a list by phase, agent or worktree. A card is
// moved by dragging it or by keys; the server says before where it may go, and decides.

import { draw, h, withCode } from "../../parts/dom.js";
import { many, MARKS } from "../../parts/format.js";
import { isPast } from "../../parts/moment.js";
import { act } from "../../parts/notices.js";
import { bar, count } from "../../parts/progress.js";
import { call } from "../../parts/rpc.js";
import { countChanges, createStillness, showOwnChange } from "../../parts/stillness.js";
import { createTurns } from "../../parts/turns.js";
import { windowed } from "../../parts/windowed.js";
import { drawCard, drawRow } from "./cards.js";
import { countLoadable, drawHeading, groupCards, listRows, STATES, whatIsNotShown } from "./groups.js";

/** @import { Page, Place } from "../../page_table.js" */
/** @import { Card, CardOptions } from "./cards.js" */

/** @typedef {{ board: any, cards: Card[], branches: Map<string, string> }} Answer */

const TARGETS = ["ready", "blocked", "completed"];
const GROUPINGS = ["state", "phase", "agent", "worktree"];
const LIMITS = [25, 200, 1000];
const CARD = 76;
const ROW = 32;

/**
 * @param {Place} place
 * @returns {Page}
 */
export function open({ root, query, go, replace }) {
  let words = query.get("q") ?? "";
  let by = GROUPINGS.find((each) => each === query.get("by")) ?? "state";
  let limit = words ? LIMITS[2] : LIMITS[0];
  /** @type {any} */
  let board = { tasks: {}, initiatives: [] };
  /** @type {Card[]} */
  let cards = [];
  /** @type {Map<string, string>} */
  let branches = new Map();
  /** What was read, while it would move what is shown. @type {Answer | null} */
  let waiting = null;
  let chosen = "";
  /** @type {Set<string>} */
  const selected = new Set();
  /** @type {Set<string>} */
  const folded = new Set();
  let renaming = "";
  let isMoving = false;
  let dragged = "";
  let over = "";
  /** Why the dragged card may not go to a state. @type {Map<string, string>} */
  let reasons = new Map();
  /** @type {Record<string, string>} */
  let refusal = {};

  const begin = createTurns();
  const still = createStillness({ root, refresh, release, isBusy: () => dragged !== "" });

  async function refresh() {
    const isLast = begin();
    const [found, status] = await Promise.all([call("board", { limit }), by === "worktree" ? call("status") : null]);
    // While cards are on their way, an answer may not know of it yet; what comes after them does.
    if (!isLast() || isMoving) return;
    const read = { board: found, cards: cardsOf(found), branches: status ? branchesOf(status) : branches };
    const before = { board, cards, branches };
    const places = listPlaces();
    take(read);
    if (still.mustWait() && before.cards.length && listPlaces() !== places) {
      // Cards that stay where they are say what is known of them now.
      const stay = new Map(read.cards.map((each) => [placeOf(each), each]));
      take({ ...before, cards: before.cards.map((each) => stay.get(placeOf(each)) ?? each) });
      waiting = read;
    }
    show();
  }

  /** @param {any} found @returns {Card[]} */
  const cardsOf = (found) =>
    found.initiatives.flatMap((/** @type {any} */ initiative) =>
      initiative.phases.flatMap((/** @type {any} */ phase) =>
        Object.entries(phase.tasks).flatMap(([state, lane]) =>
          /** @type {any} */ (lane).shown.map((/** @type {any} */ card) => ({ ...card, state, phase: phase.name, phaseId: phase.id, initiative: initiative.name })),
        ),
      ),
    );

  /** @param {any} status @returns {Map<string, string>} */
  const branchesOf = (status) => new Map(status.spaces[0].rows.map((/** @type {any} */ row) => [row.agent_id, row.branch ?? row.worktree]));

  /** @param {Answer} read */
  function take(read) {
    ({ board, cards, branches } = read);
    waiting = null;
    const there = new Set(cards.map((each) => each.id));
    for (const id of selected) if (!there.has(id)) selected.delete(id);
  }

  /** Show what waits. */
  function release() {
    if (!waiting || isMoving) return;
    take(waiting);
    show();
  }

  /** Which card is in which column or group. @param {Card} card */
  const placeOf = (card) => [card.id, card.state, card.phaseId, by === "state" ? "" : card.agent_id].join();

  /** All that is drawn, in its order: what is drawn elsewhere or not at all makes another text. */
  function listPlaces() {
    if (by !== "state") return listRows(groups(), folded).map((each) => ("group" in each ? each.group.key : each.card.id)).join();
    return STATES.map((state) => [!board.tasks[state], ...column(state).map((each) => each.id)].join()).join(";");
  }

  function countWaiting() {
    const places = (/** @type {Card[]} */ all) => new Map(all.map((each) => [each.id, placeOf(each)]));
    return waiting ? Math.max(1, countChanges(places(cards), places(waiting.cards))) : 0;
  }

  function matching() {
    const asked = words.toLowerCase();
    return asked ? cards.filter((each) => `${each.name} ${each.agent ?? ""} ${each.phase ?? ""} ${each.id}`.toLowerCase().includes(asked)) : cards;
  }

  /** @param {string} state */
  const column = (state) => matching().filter((each) => each.state === state);

  const groups = () => groupCards(/** @type {any} */ (by), board, matching(), branches);

  /** The cards as keys walk through them: columns, or one list. @returns {Card[][]} */
  const lists = () => (by === "state" ? STATES.map(column) : [groups().flatMap((each) => (folded.has(each.key) ? [] : each.cards))]).filter((each) => each.length);

  /**
   * Move a card, or all that are selected if it is one of them.
   * @param {string} id
   * @param {string} state
   */
  async function move(id, state) {
    const ids = selected.has(id) ? [...selected] : [id];
    endDrag();
    refusal = {};
    isMoving = true;
    for (const each of ids) await moveOne(each, state);
    isMoving = false;
    selected.clear();
    await showOwnChange();
    focusChosen();
  }

  /**
   * @param {string} id
   * @param {string} state
   */
  async function moveOne(id, state) {
    const card = cards.find((each) => each.id === id);
    if (!card || card.state === state) return;
    const before = card.state;
    card.state = state;
    show();
    try {
      await act(`${card.name}: ${state}`, "task.move", { task: id, state }, id);
    } catch (error) {
      card.state = before;
      const text = `${card.name}: ${/** @type {Error} */ (error).message.replace(/^state: /, "")}`;
      refusal = { state, text: refusal.state === state ? `${refusal.text}\n${text}` : text };
      show();
    }
  }

  function focusChosen() {
    /** @type {HTMLElement | null} */ (root.querySelector(".chosen a"))?.focus();
  }

  /** @type {CardOptions} */
  const options = {
    by,
    chosen,
    selected,
    renaming,
    choose: (id) => {
      if (chosen === id) return;
      chosen = id;
      show();
    },
    select: (id) => {
      if (!selected.delete(id)) selected.add(id);
      chosen = id;
      show();
    },
    startRename,
    endRename,
    drag: (card, event) => {
      dragged = card.id;
      event.dataTransfer?.setData("text/plain", card.id);
      if (!isPast()) askMoves(card.id); // a drop at an earlier moment is refused with its reason
    },
    drop: () => {
      endDrag();
      show();
      still.settle();
    },
  };

  function endDrag() {
    dragged = over = "";
    reasons = new Map();
  }

  /**
   * Ask the server where a card may go, for as long as it is dragged.
   * @param {string} id
   */
  async function askMoves(id) {
    const moves = await call("task.moves", { task: id });
    if (dragged !== id) return;
    reasons = new Map(moves.filter((/** @type {any} */ each) => each.reason).map((/** @type {any} */ each) => [each.state, each.reason]));
    show();
  }

  /** @param {string} id */
  function startRename(id) {
    if (!id || isPast()) return;
    chosen = renaming = id;
    show();
    const input = /** @type {HTMLInputElement | null} */ (root.querySelector("input.rename"));
    input?.focus();
    input?.select();
  }

  /**
   * @param {Card} card
   * @param {string | null} name
   */
  async function endRename(card, name) {
    if (renaming !== card.id) return;
    renaming = "";
    const text = name?.trim();
    if (text && text !== card.name) {
      try {
        await act(`${card.name}: renamed`, "task.set", { id: card.id, name: text }, card.id);
        refusal = {};
        await showOwnChange();
      } catch (error) {
        refusal = { state: card.state, text: `${card.name}: ${/** @type {Error} */ (error).message}` };
      }
    }
    show();
    focusChosen();
  }

  const drawRefusal = () => h("p", { class: "trouble", role: "alert" }, withCode(refusal.text), " ", h("button", { class: "quiet", onclick: clearSelection }, "Close"));

  /**
   * How many tasks are not here: a button if it brings some of them, else where they are.
   * @param {number} rest
   * @param {string[]} states those that they are in
   */
  function drawMore(rest, states) {
    const count = rest.toLocaleString("en");
    const text = cards.some((each) => states.includes(each.state)) ? `and ${count} more` : `${count} not shown`;
    const canLoad = limit < LIMITS[LIMITS.length - 1] && countLoadable(board, states) > 0;
    const done = states.includes("completed") ? (board.tasks.completed ?? 0) - cards.filter((each) => each.state === "completed").length : 0;
    const part = done === rest ? "" : `${done.toLocaleString("en")} of them completed: `;
    return h(
      "p",
      { class: "more mute" },
      canLoad ? h("button", { class: "quiet", onclick: more }, text) : text,
      done > 0 && [canLoad || part ? ", " : ": ", part, h("code", null, "herdbook task list --status completed")],
    );
  }

  /** @param {string} state */
  function drawColumn(state) {
    const shown = column(state);
    const total = board.tasks[state] ?? 0;
    const rest = total - cards.filter((each) => each.state === state).length;
    // An empty column stays, narrow: if it came while a card is dragged, all would move under the hand.
    const isEmpty = !total && !shown.length && refusal.state !== state;
    const reason = reasons.get(state);
    return h(
      "section",
      {
        key: state,
        class: `column ${state}${over === state ? " target" : ""}${isEmpty ? " empty" : ""}${reason ? " closed" : ""}`,
        "data-state": state,
        "aria-labelledby": `column-${state}`,
        ondragover: (/** @type {DragEvent} */ event) => {
          event.preventDefault();
          if (over === state) return;
          over = state;
          show();
        },
        ondrop: (/** @type {DragEvent} */ event) => {
          event.preventDefault();
          move(dragged || (event.dataTransfer?.getData("text/plain") ?? ""), state);
        },
      },
      h(
        "h2",
        { id: `column-${state}` },
        h("span", { class: `mark ${state}`, "aria-hidden": "true" }, MARKS[state]),
        `${state} `,
        h("span", { class: "mute" }, words && shown.length !== total ? `${shown.length} of ${total.toLocaleString("en")}` : total.toLocaleString("en")),
      ),
      reason && h("p", { class: "reason" }, withCode(reason)),
      refusal.state === state && drawRefusal(),
      !isEmpty && windowed({
        name: `board ${state}`,
        label: `${state} tasks`,
        items: shown,
        rowHeight: CARD,
        row: (card) => drawCard(card, options),
        redraw: show,
        foot: rest > 0 && drawMore(rest, [state]),
      }),
    );
  }

  function drawList() {
    const all = groups();
    const shown = all.reduce((sum, each) => sum + each.cards.length, 0);
    const rest = totalOf() - (words ? cards.length : shown);
    return h(
      "section",
      { key: "groups", class: "groups", "aria-label": `Tasks by ${by}` },
      refusal.text && drawRefusal(),
      windowed({
        name: `board by ${by}`,
        label: `Tasks by ${by}`,
        items: listRows(all, folded),
        rowHeight: ROW,
        row: (item) => ("group" in item ? drawHeading(item.group, folded.has(item.group.key), fold) : drawRow(item.card, options)),
        redraw: show,
        foot: rest > 0 && drawMore(rest, STATES),
      }),
    );
  }

  /** @param {string} key */
  function fold(key) {
    if (!folded.delete(key)) folded.add(key);
    show();
  }

  function more() {
    limit = LIMITS[LIMITS.indexOf(limit) + 1];
    showOwnChange();
  }

  /** @returns {number} */
  const totalOf = () => Object.values(board.tasks).reduce((sum, each) => sum + each, 0);

  function keepAddress() {
    const parts = { by: by === "state" ? "" : by, q: words };
    const asked = new URLSearchParams(Object.entries(parts).filter(([, value]) => value));
    replace(asked.size ? `/board?${asked}` : "/board");
  }

  function controls() {
    const part = { done: board.tasks.completed ?? 0, total: totalOf() };
    return h(
      "div",
      { key: "filter", class: "filter" },
      h("h1", null, "Board"),
      h("input", {
        type: "search",
        value: words,
        "aria-label": "Filter tasks",
        placeholder: "Filter ( / )",
        oninput: (/** @type {Event} */ event) => {
          words = /** @type {HTMLInputElement} */ (event.currentTarget).value;
          keepAddress();
          show();
          // Whoever looks for something looks among as many as there can be here.
          if (words && limit < LIMITS[2]) {
            limit = LIMITS[2];
            showOwnChange();
          }
        },
      }),
      h(
        "label",
        { class: "by" },
        h("span", { class: "mute" }, "by "),
        h(
          "select",
          {
            "aria-label": "Group by",
            onchange: (/** @type {Event} */ event) => {
              by = /** @type {HTMLSelectElement} */ (event.currentTarget).value;
              keepAddress();
              showOwnChange();
            },
          },
          GROUPINGS.map((each) => h("option", { key: each, value: each, selected: each === by }, each)),
        ),
      ),
      selected.size > 0
        ? h(
            "span",
            { key: "selected", class: "selection" },
            h("b", null, `${many(selected.size, "task")} selected`),
            TARGETS.map((state) => h("button", { key: state, onclick: () => move([...selected][0], state) }, `Move to ${state}`)),
            h("button", { class: "quiet", onclick: clearSelection }, "Clear"),
          )
        : chosen && !isPast() && h("span", { key: "hint", class: "mute wide" }, "m moves the chosen card, n renames it, x selects it"),
      part.total > 0 && !selected.size && h("span", { key: "whole", class: "whole" }, bar(part, "The whole plan"), h("span", { class: "mute" }, `${count(part)} done`)),
    );
  }

  function clearSelection() {
    selected.clear();
    refusal = {};
    show();
  }

  function show() {
    const changes = countWaiting();
    Object.assign(options, { by, chosen, renaming });
    const hidden = whatIsNotShown(board);
    draw(root, [
      controls(),
      hidden && h("p", { key: "hidden", class: "mute" }, hidden),
      still.draw(
        changes > 0 ? `${many(changes, "change")}, show` : "",
        totalOf()
          ? by === "state"
            ? h("div", { key: "columns", class: dragged ? "columns dragging" : "columns" }, STATES.map(drawColumn))
            : drawList()
          : h("p", { key: "empty", class: "calm" }, isPast() ? "The plan was empty." : ["The plan is empty. ", h("code", null, "herdbook task add 'write the parser'")]),
      ),
    ]);
  }

  /**
   * @param {number} across
   * @param {number} down
   */
  function choose(across, down) {
    const all = lists();
    const at = Math.max(0, all.findIndex((list) => list.some((each) => each.id === chosen)));
    const list = all[Math.max(0, Math.min(all.length - 1, at + across))] ?? [];
    const row = list.findIndex((each) => each.id === chosen);
    const next = list[across || row < 0 ? 0 : Math.max(0, Math.min(list.length - 1, row + down))];
    if (!next) return;
    chosen = next.id;
    show();
    focusChosen();
  }

  /** Ask where the chosen card goes, by keys; the server says where it may. */
  async function askTarget() {
    const card = cards.find((each) => each.id === chosen);
    if (!card || isPast()) return;
    const moves = await call("task.moves", { task: card.id });
    if (chosen !== card.id || !root.isConnected || document.querySelector("dialog")) return;
    const dialog = document.createElement("dialog");
    dialog.setAttribute("aria-label", `Move ${card.name}`);
    dialog.onclose = () => (dialog.remove(), focusChosen());
    document.body.append(dialog);
    const title = selected.has(card.id) && selected.size > 1 ? many(selected.size, "task") : `“${card.name}”`;
    draw(dialog, [
      h("h2", null, `Move ${title} to`),
      h(
        "ul",
        { class: "targets" },
        moves.map((/** @type {{ state: string, reason: string | null }} */ { state, reason }) =>
          h(
            "li",
            { key: state },
            h("button", { disabled: reason !== null, onclick: () => (dialog.close(), move(card.id, state)) }, h("span", { class: `mark ${state}`, "aria-hidden": "true" }, MARKS[state]), state),
            reason && h("span", { class: "mute" }, withCode(reason)),
          ),
        ),
      ),
    ]);
    dialog.showModal();
  }

  return {
    refresh,
    tick: show,
    keys: {
      j: () => choose(0, 1),
      k: () => choose(0, -1),
      h: () => choose(-1, 0),
      l: () => choose(1, 0),
      m: () => void askTarget(),
      n: () => startRename(chosen),
      x: () => chosen && options.select(chosen),
      e: () => void move(chosen, "completed"),
      Escape: clearSelection,
      Enter: () => chosen && go(`/task/${chosen}`),
      "/": () => /** @type {HTMLElement | null} */ (root.querySelector("input[type=search]"))?.focus(),
    },
    help: [
      ["h j k l", "choose a card"],
      ["x", "select it; Ctrl and a click do it too"],
      ["m", "move it, or all that are selected, to another state"],
      ["n", "rename it"],
      ["e", "complete it"],
      ["Enter", "open it"],
      ["/", "filter"],
    ],
  };
}
