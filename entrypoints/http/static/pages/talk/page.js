// Talk: what agents say to one another and to you. Threads, questions and chats in one list, what
// needs your answer first; one of them with its lines, answered in place; and letters to one or all.

import { draw, h } from "../../parts/dom.js";
import { ago, exact, many, short } from "../../parts/format.js";
import { isPast } from "../../parts/moment.js";
import { act, notify } from "../../parts/notices.js";
import { call } from "../../parts/rpc.js";
import { createStillness, hasFocus, showOwnChange } from "../../parts/stillness.js";
import { createTurns } from "../../parts/turns.js";
import { windowed } from "../../parts/windowed.js";
import { drawComposer } from "./composer.js";

/** @import { Page, Place } from "../../page_table.js" */
/**
 * @typedef {{ id: string, at: string, by?: string, to?: string, text: string, status?: string, requires_response: boolean }} Line
 * @typedef {{ id: string, kind: string, title: string, agents: string[], last: Line, lines: number, unread: number, needs_answer: boolean, open: boolean, task_id?: string }} Entry
 * @typedef {{ entry: Entry, shown: Line[], reply?: { method: string, params: Record<string, any>, text: string } }} Text
 */

const ROW = 56;
const PAGE = 100;
const MOST = 1000;
const SIGNS = /** @type {Record<string, string>} */ ({ thread: "✉", question: "?", chat: "◇" });

/** Words for those who hear the page; others see what is meant. @param {string} words */
const heard = (words) => h("span", { class: "heard" }, words);

/**
 * @param {Place} place
 * @returns {Page}
 */
export function open({ root, key, replace }) {
  /** @type {{ entries: Entry[], total: number, unread: number, unanswered: number }} */
  let list = { entries: [], total: 0, unread: 0, unanswered: 0 };
  /** The order that is shown: it stays while the pointer is on the list. @type {string[]} */
  let order = [];
  let limit = PAGE;
  let chosen = key ?? "";
  /** @type {Text | null} */
  let text = null;
  /** @type {string[]} */
  let agents = [];
  let isWriting = false;
  let lost = "";
  /** What is being written, by what it is for. @type {Map<string, string>} */
  const drafts = new Map();
  /** @type {Map<string, string>} */
  const refusals = new Map();

  const begin = createTurns();
  const beginText = createTurns();
  const still = createStillness({ root, refresh, release, isBusy: () => hasFocus(root) });

  async function refresh() {
    const isLast = begin();
    const [found, known] = await Promise.all([call("talk.list", { limit }), call("agent.list", { limit: MOST })]);
    if (!isLast()) return;
    list = found;
    agents = known.filter((/** @type {any} */ each) => !["stopped", "crashed"].includes(each.status)).map((/** @type {any} */ each) => each.name).sort();
    if (!still.mustWait() || !order.length) order = list.entries.map((each) => each.id);
    await readText();
    show();
  }

  /** Show what waits, in its order. */
  function release() {
    order = list.entries.map((each) => each.id);
    show();
  }

  async function readText() {
    const wanted = chosen;
    const isLast = beginText();
    if (!wanted) {
      text = null;
      return;
    }
    try {
      const found = await call("talk.show", { id: wanted });
      if (!isLast()) return;
      text = found;
      chosen = found.entry.id;
      lost = "";
    } catch (error) {
      if (!isLast()) return;
      text = null;
      lost = /** @type {Error} */ (error).message;
    }
  }

  /** The entries in the order that is shown; those that came since are behind a button. */
  function entries() {
    const known = new Map(list.entries.map((each) => [each.id, each]));
    return order.flatMap((id) => known.get(id) ?? []);
  }

  /** @param {string} id */
  async function choose(id) {
    chosen = id;
    isWriting = false;
    replace(id ? `/talk/${id}` : "/talk");
    await readText();
    show();
    const lines = root.querySelector(".lines");
    if (lines) lines.scrollTop = lines.scrollHeight;
  }

  /** @param {number} step */
  function move(step) {
    const all = entries();
    const at = all.findIndex((each) => each.id === chosen);
    const next = all[Math.max(0, Math.min(all.length - 1, at + step))];
    if (next && next.id !== chosen) choose(next.id);
  }

  /**
   * Do something with what is shown; a refusal is said in place.
   * @param {string} about
   * @param {() => Promise<any>} deed
   */
  async function attempt(about, deed) {
    try {
      await deed();
      refusals.delete(about);
      drafts.delete(about);
      const box = root.querySelector("textarea");
      if (box?.dataset.about === about) box.value = "";
      await showOwnChange();
    } catch (error) {
      refusals.set(about, /** @type {Error} */ (error).message);
      show();
    }
  }

  async function reply() {
    const shown = text;
    // What is shown, which is another than the chosen one until that is there.
    const about = shown?.entry.id ?? "";
    const words = drafts.get(about) ?? "";
    if (!shown?.reply || !words.trim()) return focusText();
    const { method, params, text: name } = shown.reply;
    const given = { ...params, [name]: words };
    await attempt(about, async () => {
      // What was said in a chat stays said.
      if (method === "chat.post") {
        await call(method, given);
        notify("Said.");
      } else await act("Answered.", method, given, (result) => result.id);
    });
    const lines = root.querySelector(".lines");
    if (lines) lines.scrollTop = lines.scrollHeight;
  }

  async function markRead() {
    if (!text?.entry.unread) return;
    const { id } = text.entry;
    await attempt(id, () => act("Marked as read.", "talk.read", { message: id }, (result) => result[0]?.id ?? ""));
  }

  /**
   * @param {string} to the name of an agent, or empty for all
   * @param {boolean} asks
   */
  async function send(to, asks) {
    const content = drafts.get("new") ?? "";
    if (!content.trim()) return focusText();
    const flag = asks ? { requires_response: true } : {};
    await attempt("new", async () => {
      if (to) {
        const sent = await act(`Sent to ${to}.`, "message.add", { content, to, ...flag }, (result) => result.id);
        chosen = sent.id;
        replace(`/talk/${sent.id}`);
      } else {
        const sent = await act(`Sent to ${many(agents.length, "agent")}.`, "message.broadcast", { content, ...flag }, (result) => result[0].id);
        chosen = sent[0].id;
        replace(`/talk/${chosen}`);
      }
      isWriting = false;
    });
  }

  function focusText() {
    /** @type {HTMLElement | null} */ (root.querySelector("textarea"))?.focus();
  }

  /** @param {boolean} writing */
  function write(writing) {
    isWriting = writing;
    show();
    if (writing) focusText();
  }

  /** @param {Entry} entry */
  function drawRow(entry) {
    const isChosen = entry.id === chosen;
    const state = entry.needs_answer ? "needs your answer" : entry.unread ? `${entry.unread} unread` : entry.open ? "" : entry.kind === "chat" ? "closed" : "answered";
    const who = entry.agents.map((each) => each.slice(0, 60)).join(", ") || "nobody";
    const by = entry.last.by ?? (entry.kind === "chat" && !entry.lines ? "" : "you");
    return h(
      "li",
      { key: entry.id, class: `entry-row${entry.needs_answer ? " mine" : ""}${isChosen ? " chosen" : ""}`, "data-id": entry.id },
      h(
        "a",
        {
          href: `/talk/${entry.id}`,
          "aria-current": isChosen ? "true" : null,
          onclick: (/** @type {MouseEvent} */ event) => {
            if (event.ctrlKey || event.metaKey || event.shiftKey) return;
            event.preventDefault();
            choose(entry.id);
          },
        },
        h(
          "span",
          { class: "top" },
          h("span", { class: "mark", "aria-hidden": "true" }, entry.needs_answer ? "!" : SIGNS[entry.kind] ?? ""),
          h("span", { class: entry.unread || entry.needs_answer ? "who new" : "who" }, who),
          h("span", { class: "mute state" }, state),
          h("time", { datetime: entry.last.at, title: exact(entry.last.at) }, ago(entry.last.at)),
        ),
        h("span", { class: "last mute" }, by ? `${by}: ` : "", entry.last.text.slice(0, 200).split("\n")[0]),
      ),
    );
  }

  /** @param {Line} line */
  function drawLine(line) {
    const isMine = !line.by;
    return h(
      "li",
      { key: line.id, class: isMine ? "line own" : "line" },
      h(
        "div",
        { class: "top" },
        h("b", null, line.by ?? "you"),
        line.to !== undefined && line.to !== null ? h("span", { class: "mute" }, ` to ${line.to}`) : !isMine && text?.entry.kind === "thread" && h("span", { class: "mute" }, " to you"),
        h("time", { datetime: line.at, title: exact(line.at) }, ago(line.at)),
        line.requires_response && line.status !== "responded" && h("span", { class: "asks" }, "needs an answer"),
        isMine && line.status && line.status !== "pending" && h("span", { class: "mute" }, line.status === "read" ? "read" : "answered"),
      ),
      h("p", { class: "prose" }, line.text),
    );
  }

  function drawText() {
    if (lost) return h("section", { key: "lost", class: "talk-text" }, h("p", { class: "trouble", role: "alert" }, lost));
    if (!text) return h("section", { key: "nothing", class: "talk-text none" }, h("p", { class: "calm" }, list.entries.length ? "Choose what to read." : ""));
    const { entry, shown, reply: answer } = text;
    const left = entry.lines - shown.length;
    const refusal = refusals.get(entry.id);
    const kind = { thread: "Thread", question: "Question", chat: "Chat" }[entry.kind] ?? entry.kind;
    return h(
      "section",
      { key: `text ${entry.id}`, class: "talk-text", "aria-labelledby": "talk-title" },
      h(
        "div",
        { class: "talk-head" },
        h("button", { class: "quiet back", onclick: () => choose("") }, "← All"),
        h("h2", { id: "talk-title" }, kind, entry.agents.length ? ` with ${entry.agents.map((each) => each.slice(0, 80)).join(", ")}` : ""),
        entry.task_id && h("a", { class: "about", href: `/task/${entry.task_id}` }, `task ${short(entry.task_id)}`),
        entry.unread > 0 && !isPast() && h("button", { class: "quiet", title: "e", onclick: markRead }, "Mark as read"),
      ),
      left > 0 && h("p", { key: "left", class: "mute" }, `${many(left, "earlier line")} not shown`),
      h("ol", { class: "lines", tabindex: "0", "aria-label": "What was said" }, shown.map(drawLine)),
      answer && !isPast()
        ? h(
            "div",
            { key: "reply", class: "reply" },
            drawBox(entry.id, "Your answer", reply),
            h("button", { class: "strong", onclick: reply }, h("kbd", { "aria-hidden": "true" }, "r"), entry.kind === "chat" ? "Say" : "Answer"),
          )
        : h("p", { key: "over", class: "mute" }, isPast() ? "An earlier moment can only be read." : "It is over."),
      refusal && h("p", { key: "refusal", class: "trouble", role: "alert" }, refusal),
    );
  }

  /**
   * @param {string} about
   * @param {string} label
   * @param {() => void} done
   */
  function drawBox(about, label, done) {
    return h("textarea", {
      key: `box ${about}`,
      "data-about": about,
      rows: "2",
      "aria-label": label,
      placeholder: label,
      value: drafts.get(about) ?? "",
      oninput: (/** @type {Event} */ event) => drafts.set(about, /** @type {HTMLTextAreaElement} */ (event.currentTarget).value),
      onkeydown: (/** @type {KeyboardEvent} */ event) => {
        if (event.key === "Enter" && !event.shiftKey) {
          event.preventDefault();
          done();
        } else if (event.key === "Escape") /** @type {HTMLElement} */ (event.currentTarget).blur();
      },
    });
  }

  function show() {
    const shown = entries();
    const fresh = list.entries.filter((each) => !order.includes(each.id)).length;
    const counts = shown.length < list.total ? `${shown.length} of ${list.total.toLocaleString("en")}` : String(list.total);
    const needs = list.unanswered === 1 ? "needs your answer" : "need your answer";
    root.classList.toggle("reading", Boolean(chosen) || isWriting);
    draw(root, [
      h(
        "div",
        { key: "filter", class: "filter" },
        h("h1", null, "Talk ", h("span", { class: "mute" }, counts), heard(list.unanswered ? " in all, " : " in all"), list.unanswered > 0 && [h("b", { class: "count", title: needs }, list.unanswered), heard(` ${needs}`)]),
        list.unread > 0 && h("span", { class: "mute" }, `${list.unread} unread`),
        !isPast() && h("button", { title: "c", "aria-pressed": String(isWriting), onclick: () => write(!isWriting) }, "New message"),
      ),
      h(
        "div",
        { key: "columns", class: "columns" },
        list.total
          ? h(
              "div",
              { key: "list", class: "talk-list" },
              still.draw(
                fresh > 0 ? `${fresh} new` : "",
                windowed({
                  name: "talk",
                  label: "What was said",
                  items: shown,
                  rowHeight: ROW,
                  row: drawRow,
                  redraw: show,
                  foot: list.entries.length < list.total && limit < MOST && h("p", { class: "more" }, h("button", { class: "quiet", onclick: more }, `${(list.total - list.entries.length).toLocaleString("en")} more`)),
                }),
              ),
            )
          : h("p", { key: "none", class: "calm" }, "Nobody has said anything yet. ", h("code", null, "herdbook message broadcast 'hello'")),
        isWriting ? drawComposer({ agents, box: (done) => drawBox("new", "Your message", done), send, refusal: refusals.get("new") ?? "", close: () => write(false) }) : drawText(),
      ),
    ]);
  }

  function more() {
    limit = Math.min(MOST, limit * 2);
    order = [];
    return refresh();
  }

  return {
    refresh,
    tick: show,
    area: "work",
    keys: {
      j: () => move(1),
      k: () => move(-1),
      Enter: focusText,
      r: focusText,
      e: () => void markRead(),
      c: () => write(true),
      Escape: () => (isWriting ? write(false) : choose("")),
    },
    help: [
      ["j k", "next, previous"],
      ["r Enter", "answer"],
      ["e", "mark as read"],
      ["c", "new message"],
      ["Esc", "back to the list"],
    ],
  };
}
