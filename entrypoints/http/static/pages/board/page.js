// The board: a column for each state with true totals. A card is moved by dragging it or by keys; the
// server decides, and a refusal is said where the card was dropped.

import { draw, h } from "../../parts/dom.js";
import { leaseLeft, MARKS, short } from "../../parts/format.js";
import { clock, isPast } from "../../parts/moment.js";
import { act } from "../../parts/notices.js";
import { call } from "../../parts/rpc.js";
import { windowed } from "../../parts/windowed.js";

/** @import { Page, Place } from "../../page_table.js" */

const STATES = ["ready", "held", "waiting", "blocked", "review", "completed"];
const LIMITS = [25, 200, 1000];
const CARD = 76;

/**
 * @param {Place} place
 * @returns {Page}
 */
export function open({ root, query, go, replace }) {
  let limit = LIMITS[0];
  let words = query.get("q") ?? "";
  /** @type {any} */
  let board = { tasks: {}, initiatives: [] };
  /** @type {any[]} */
  let cards = [];
  let chosen = "";
  let dragged = "";
  let over = "";
  /** @type {Record<string, string>} */
  let refusal = {};

  async function refresh() {
    board = await call("board", { limit });
    cards = board.initiatives.flatMap((/** @type {any} */ initiative) =>
      initiative.phases.flatMap((/** @type {any} */ phase) =>
        Object.entries(phase.tasks).flatMap(([state, lane]) =>
          /** @type {any} */ (lane).shown.map((/** @type {any} */ card) => ({ ...card, state, phase: phase.name, phaseId: phase.id })),
        ),
      ),
    );
    show();
  }

  /** @param {string} state */
  const column = (state) => {
    const asked = words.toLowerCase();
    return cards.filter((each) => each.state === state && (!asked || `${each.name} ${each.agent ?? ""} ${each.id}`.toLowerCase().includes(asked)));
  };

  /**
   * @param {string} id
   * @param {string} state
   */
  async function move(id, state) {
    const card = cards.find((each) => each.id === id);
    dragged = over = "";
    if (!card || card.state === state) return show();
    const before = card.state;
    card.state = state;
    refusal = {};
    show();
    try {
      await act(`${card.name}: ${state}`, "task.move", { task: id, state }, id);
      await refresh();
    } catch (error) {
      card.state = before;
      refusal = { state, text: `${card.name}: ${/** @type {Error} */ (error).message.replace(/^state: /, "")}` };
      show();
    }
    focusChosen();
  }

  function focusChosen() {
    /** @type {HTMLElement | null} */ (root.querySelector(".card.chosen a"))?.focus();
  }

  /** @param {any} card */
  function why(card) {
    if (card.state === "held") {
      const who = card.agent ?? "nobody known";
      const left = card.lease_until ? `, ${leaseLeft(card.lease_until)}` : isPast() ? ", lease not known" : "";
      return `${who}${card.for_review ? " reviews it" : ""}${left}`;
    }
    if (!card.waits_for.length) return "";
    const tasks = card.waits_for.filter((/** @type {any} */ each) => each.kind === "task");
    const named = tasks.length
      ? tasks.map((/** @type {any} */ each) => each.name)
      : card.waits_for.map((/** @type {any} */ each) => (each.id === card.phaseId ? `its phase (${each.status})` : `${each.kind} ${each.name} (${each.status})`));
    const more = named.length - 2 + card.waits_for_more;
    return `for ${named.slice(0, 2).join(", ")}${more > 0 ? ` +${more}` : ""}`;
  }

  /** @param {any} card */
  function drawCard(card) {
    const isOver = card.state === "held" && card.lease_until && Date.parse(card.lease_until) < clock();
    return h(
      "li",
      {
        key: card.id,
        class: `card ${card.state}${card.id === chosen ? " chosen" : ""}${isOver ? " over" : ""}`,
        "data-id": card.id,
        draggable: "true",
        ondragstart: (/** @type {DragEvent} */ event) => {
          dragged = card.id;
          event.dataTransfer?.setData("text/plain", card.id);
        },
        ondragend: () => {
          dragged = over = "";
          show();
        },
        onfocusin: () => {
          if (chosen === card.id) return;
          chosen = card.id;
          show();
        },
      },
      h(
        "div",
        { class: "line" },
        h("span", { class: `mark ${card.state}`, "aria-hidden": "true" }, MARKS[card.state]),
        h("a", { href: `/task/${card.id}`, title: card.name, draggable: "false" }, card.name),
      ),
      h("p", { class: "why mute" }, why(card)),
      h(
        "p",
        { class: "facts mute" },
        h("code", null, short(card.id)),
        card.phase && h("span", null, card.phase),
        card.priority !== "medium" && h("span", null, card.priority),
        card.critical && h("span", { class: "critical" }, "★ critical"),
      ),
    );
  }

  /** @param {string} state */
  function drawColumn(state) {
    const shown = column(state);
    const total = board.tasks[state] ?? 0;
    const rest = total - cards.filter((each) => each.state === state).length;
    // An empty column stays, narrow: if it came while a card is dragged, all would move under the hand.
    const isEmpty = !total && !shown.length && refusal.state !== state;
    const canLoad = rest > 0 && limit < LIMITS[LIMITS.length - 1];
    return h(
      "section",
      {
        key: state,
        class: `column ${state}${over === state ? " target" : ""}${isEmpty ? " empty" : ""}`,
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
      refusal.state === state && h("p", { class: "trouble", role: "alert" }, refusal.text),
      !isEmpty && windowed({
        name: `board ${state}`,
        label: `${state} tasks`,
        items: shown,
        rowHeight: CARD,
        row: drawCard,
        redraw: show,
        foot:
          rest > 0 &&
          h(
            "p",
            { class: "more mute" },
            canLoad ? h("button", { class: "quiet", onclick: more }, `and ${rest.toLocaleString("en")} more`) : `and ${rest.toLocaleString("en")} more`,
          ),
      }),
    );
  }

  function more() {
    limit = LIMITS[LIMITS.indexOf(limit) + 1];
    refresh();
  }

  function show() {
    const total = Object.values(board.tasks).reduce((sum, each) => sum + each, 0);
    draw(root, [
      h(
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
            replace(words ? `/board?q=${encodeURIComponent(words)}` : "/board");
            show();
          },
        }),
        chosen && !isPast() && h("span", { class: "mute wide" }, "m moves the chosen card"),
      ),
      total
        ? h("div", { key: "columns", class: "columns" }, STATES.map(drawColumn))
        : h("p", { key: "empty", class: "calm" }, "The plan is empty. ", h("code", null, "herdbook task add 'write the parser'")),
    ]);
  }

  /**
   * @param {number} across
   * @param {number} down
   */
  function choose(across, down) {
    const open = STATES.filter((state) => column(state).length);
    const card = cards.find((each) => each.id === chosen);
    const at = Math.max(0, open.indexOf(card?.state));
    const state = open[Math.max(0, Math.min(open.length - 1, at + across))];
    const list = column(state);
    const row = list.findIndex((each) => each.id === chosen);
    const next = list[across || row < 0 ? 0 : Math.max(0, Math.min(list.length - 1, row + down))];
    if (!next) return;
    chosen = next.id;
    show();
    focusChosen();
  }

  /** Ask where the chosen card goes, by keys. */
  function askTarget() {
    const card = cards.find((each) => each.id === chosen);
    if (!card) return;
    const dialog = document.createElement("dialog");
    dialog.setAttribute("aria-label", `Move ${card.name}`);
    dialog.onclose = () => (dialog.remove(), focusChosen());
    document.body.append(dialog);
    draw(dialog, [
      h("h2", null, `Move “${card.name}” to`),
      h(
        "div",
        { class: "buttons" },
        STATES.filter((state) => state !== card.state).map((state) =>
          h("button", { key: state, onclick: () => (dialog.close(), move(card.id, state)) }, h("span", { class: `mark ${state}`, "aria-hidden": "true" }, MARKS[state]), state),
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
      m: askTarget,
      e: () => void move(chosen, "completed"),
      Enter: () => chosen && go(`/task/${chosen}`),
      "/": () => /** @type {HTMLElement | null} */ (root.querySelector("input"))?.focus(),
    },
    help: [
      ["h j k l", "choose a card"],
      ["m", "move it to another state"],
      ["e", "complete it"],
      ["Enter", "open it"],
      ["/", "filter"],
    ],
  };
}
