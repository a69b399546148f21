// One review: its files, the diff of one of them, and the comments on its lines.

import { draw, h } from "../../parts/dom.js";
import { many } from "../../parts/format.js";
import { createMeasured } from "../../parts/measured.js";
import { isPast, shownMoment } from "../../parts/moment.js";
import { call, callIfKnown, Refusal } from "../../parts/rpc.js";
import { createActions } from "./actions.js";
import { readKept, saveKept } from "./drafts.js";
import { drawFiles, drawHead, FILE_HEIGHT, whyNoLines } from "./head.js";
import { drawHunk, drawLine, drawPair, guessHeight, LINE_HEIGHT } from "./lines.js";
import { reveal } from "./names.js";
import { buildRows } from "./rows.js";
import { createSelection } from "./selection.js";
import { drawComposer, drawDraft, drawThread } from "./thread.js";
import { createWriting } from "./writing.js";

/** @import { Page, Place } from "../../page_table.js" */
/** @import { Draft, Row, Thread } from "./rows.js" */
/** @typedef {{ file: string | null, source: string | null, isWhole: boolean }} Shown */

const CONTEXT = 3;
const WHOLE = 100_000;
const NUMBERS = { unified: 120, split: 72 };
const narrow = matchMedia("(max-width: 860px)");
/** Draws the review that was opened last again; one listener serves all visits. */
let redraw = () => {};
narrow.addEventListener("change", () => redraw());
addEventListener("resize", () => redraw());

/**
 * @param {Place} place
 * @returns {Page}
 */
export function openOne({ root, key, query, go, replace, entitle }) {
  const list = createMeasured("diff");
  /** @type {any} */
  let answer = null;
  /** What came meanwhile and would move what is read. @type {any} */
  let latest = null;
  /** @type {any[]} */
  let queue = [];
  let kept = readKept("");
  /** What is shown of it. @type {Shown} */
  let is = { file: query.get("file"), source: query.get("source"), isWhole: query.get("lines") === "all" };
  let turns = 0;
  /** The turn to another file, branch or range of lines that is under way; 0 for none. */
  let turning = 0;
  let view = query.get("view") === "split" ? "split" : "unified";
  let refusal = "";
  /** @type {Map<string, boolean>} */
  const folds = new Map();
  /** @type {Row[]} */
  let rows = [];

  const actions = createActions({
    answer: () => answer,
    sent: (drafts) => {
      const ids = new Set(drafts.map((each) => each.id));
      keep(({ drafts }) => ({ drafts: drafts.filter((each) => !ids.has(each.id)) }));
    },
    again: async () => {
      const isCurrent = beginReading();
      const next = await read();
      if (isCurrent()) apply(next);
    },
    refuse: (reason) => {
      refusal = reason;
      show();
    },
  });
  const selection = createSelection({ rows: () => rows, show, reveal: (at) => list.reveal(root, at), root, open: () => writing.open() });
  const writing = createWriting({
    answer: () => answer,
    kept: () => kept,
    keep: (change) => keep(({ drafts }) => ({ drafts: change(drafts) })),
    selection,
    file: () => is.file ?? "",
    send: actions.send,
    show,
    root,
  });

  /**
   * Change what is kept; another window may have changed it meanwhile.
   * @param {(kept: import("./drafts.js").Kept) => Partial<import("./drafts.js").Kept>} change
   */
  function keep(change) {
    const stored = readKept(answer.subject.id);
    kept = { ...stored, ...change(stored) };
    saveKept(answer.subject.id, kept);
  }

  /** The drafts that are written to their end. */
  const finished = () => kept.drafts.filter((each) => each.id !== writing.editing());

  /** Send the drafts, without those that another window has sent or removed meanwhile. */
  function sendAll() {
    const ids = new Set(readKept(answer.subject.id).drafts.map((each) => each.id));
    return actions.send(finished().filter((each) => ids.has(each.id)));
  }

  const current = () => answer?.files.find((/** @type {any} */ each) => each.path === is.file);
  const isSplit = () => view === "split" && !narrow.matches;
  /** @param {any} each */
  const isViewed = (each) => kept.viewed[each.path] === each.content_id;
  /** @param {Thread} thread */
  const isFolded = (thread) => folds.get(thread.first.id) ?? thread.first.resolved;

  /**
   * Read a file's diff; without a file, or if it no longer differs, that of the first to look at.
   * @param {Partial<Shown>} [other] what is to be shown instead
   * @returns {Promise<{ found: any, shown: Shown }>}
   */
  async function read(other = {}) {
    const shown = { ...is, ...other };
    const params = { subject: key, context: shown.isWhole ? WHOLE : CONTEXT, ...(shown.source ? { source: shown.source } : {}) };
    if (shown.file) {
      try {
        return { found: await call("review.diff", { ...params, file: shown.file }), shown };
      } catch (error) {
        if (!(error instanceof Refusal) || !error.message.startsWith("file: ")) throw error;
      }
    }
    const found = await call("review.diff", { ...params, stat: true });
    if (!found.files.length) return { found, shown: { ...shown, file: null } };
    return read({ ...other, file: firstFile(found) });
  }

  /** @param {any} found */
  function firstFile({ subject, files }) {
    const { viewed } = readKept(subject.id);
    const wanted = files.find((/** @type {any} */ each) => each.open_threads) ?? files.find((/** @type {any} */ each) => viewed[each.path] !== each.content_id);
    return (wanted ?? files[0]).path;
  }

  /** Begin to read again what is shown; whether that is still to be shown then. */
  function beginReading() {
    const own = turns;
    const moment = shownMoment()?.seq;
    return () => own === turns && !turning && moment === shownMoment()?.seq;
  }

  async function refresh() {
    const isCurrent = beginReading();
    const [{ found, shown }, others] = await Promise.all([read(), callIfKnown("review.queue")]);
    if (!isCurrent()) return;
    queue = others ?? [];
    if (answer && news(found) && shown.file === is.file) {
      latest = found;
      answer = mergeInPlace(answer, found);
      show();
    } else apply({ found, shown });
  }

  /** @param {{ found: any, shown: Shown }} read */
  function apply({ found, shown }) {
    turns++;
    answer = found;
    is = shown;
    latest = null;
    kept = readKept(found.subject.id);
    if (key !== found.subject.id) key = found.subject.id;
    entitle(found.subject.name);
    note();
    show();
  }

  /** The comments that an answer has and the page does not show, and whether the code is another. @param {any} found */
  function news(found) {
    const ids = new Set(answer.threads.flatMap(commentsOf));
    const fresh = found.threads.flatMap(commentsOf).filter((/** @type {string} */ each) => !ids.has(each)).length;
    const isOther = found.source?.head !== answer.source?.head;
    if (!fresh && !isOther) return "";
    return [fresh ? `${fresh} new ${fresh === 1 ? "comment" : "comments"}` : "", isOther ? "newer commits" : ""].filter(Boolean).join(", ");
  }

  /** Keep the address: the file, the view and the branch. */
  function note() {
    const asked = new URLSearchParams();
    if (is.file) asked.set("file", is.file);
    if (view === "split") asked.set("view", "split");
    if (is.isWhole) asked.set("lines", "all");
    if (is.source) asked.set("source", is.source);
    replace(`/review/${encodeURIComponent(key ?? "")}${asked.size ? `?${asked}` : ""}`);
  }

  /** Show another file, branch or range of lines. @param {Partial<Shown>} other */
  async function turn(other) {
    const own = ++turns;
    turning = own;
    try {
      const next = await read(other);
      if (own !== turning) return;
      turning = 0;
      list.reset();
      selection.forget();
      writing.close();
      refusal = "";
      apply(next);
      revealFile();
    } catch (error) {
      if (own !== turning) return;
      turning = 0;
      refusal = /** @type {Error} */ (error).message;
      show();
    }
  }

  /** Let the file that is open be seen in the list of files. */
  function revealFile() {
    const at = answer.files.findIndex((/** @type {any} */ each) => each.path === is.file);
    const box = /** @type {HTMLElement | null} */ (root.querySelector(".files .windowed"));
    if (!box || at < 0) return;
    const top = at * FILE_HEIGHT;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + FILE_HEIGHT > box.scrollTop + box.clientHeight) box.scrollTop = top + FILE_HEIGHT - box.clientHeight;
  }

  /** @param {string} path */
  const openFile = (path) => turn({ file: path });

  /** @param {number} step */
  async function stepFile(step) {
    const at = answer.files.findIndex((/** @type {any} */ each) => each.path === is.file);
    const next = answer.files[at + step];
    if (next) await openFile(next.path);
    return Boolean(next);
  }

  /** The next or previous comment of this file, else the next or previous file. @param {number} step */
  async function stepComment(step) {
    if (selection.step(step, (row) => row.kind === "thread")) return;
    if (await stepFile(step)) selection.step(step, (row) => row.kind === "thread");
  }

  function toggleViewed() {
    const shown = current();
    if (!shown) return;
    const isNow = !isViewed(shown);
    keep(({ viewed: { [shown.path]: _, ...viewed } }) => ({ viewed: isNow ? { ...viewed, [shown.path]: shown.content_id } : viewed }));
    const at = answer.files.indexOf(shown);
    const next = [...answer.files.slice(at + 1), ...answer.files.slice(0, at)].find((each) => !isViewed(each));
    if (isNow && next) void openFile(next.path);
    else show();
  }

  /** @param {string} to */
  function setView(to) {
    view = to;
    list.reset();
    note();
    show();
  }

  /** @param {Thread} thread */
  async function resolve(thread) {
    if (await actions.resolve(thread)) folds.delete(thread.first.id);
    show();
  }

  /** @param {number} step */
  function neighbour(step) {
    const at = queue.findIndex((each) => each.id === answer.subject.id);
    return at < 0 ? (step > 0 ? queue[0] : undefined) : queue[at + step];
  }

  /** @param {Row} row @param {number} at */
  function drawRow(row, at) {
    const isChosen = row.key === selection.cursor();
    const common = { at, key: row.key, isChosen, span: selection.span(), events: selection.events };
    if (row.kind === "hunk") return drawHunk(row.hunk, common);
    if (row.kind === "line") return drawLine(row.line, common);
    if (row.kind === "pair") return drawPair(row.left, row.right, common);
    if (row.kind === "draft") return drawDraft(row.draft, { ...common, edit: () => writing.edit(row.draft), remove: () => writing.remove(row.draft) });
    if (row.kind === "composer") return drawComposer({ ...common, ...writing.options() });
    const { thread } = row;
    return drawThread(thread, {
      ...common,
      isApart: row.isApart,
      isFolded: isFolded(thread),
      isPast: isPast(),
      fold: () => (folds.set(thread.first.id, !isFolded(thread)), show()),
      reply: () => writing.reply(thread),
      resolve: () => void resolve(thread),
    });
  }

  /** @param {Row} row @param {number} width */
  function guess(row, width) {
    if (row.kind === "line") return guessHeight(row.line.text, width - NUMBERS.unified);
    if (row.kind === "pair") {
      const room = width / 2 - NUMBERS.split;
      return Math.max(guessHeight(row.left?.text ?? "", room), guessHeight(row.right?.text ?? "", room));
    }
    if (row.kind === "hunk") return 28;
    return row.kind === "thread" && isFolded(row.thread) ? 40 : 6 * LINE_HEIGHT;
  }

  function drawDiff() {
    const shown = current();
    if (!shown) return h("div", { key: "diff", class: "diff" });
    const why = whyNoLines(shown);
    return h(
      "div",
      { key: "diff", class: "diff" },
      h(
        "div",
        { class: "file-head" },
        h("h2", null, h("bdi", null, reveal(shown.path)), shown.old_path && h("span", { class: "mute" }, " was ", reveal(shown.old_path))),
        h(
          "div",
          { class: "buttons" },
          !narrow.matches &&
            ["unified", "split"].map((each) => h("button", { key: each, "aria-pressed": String(view === each), onclick: () => setView(each) }, each === "split" ? "Split" : "Unified")),
          h("button", { "aria-pressed": String(is.isWhole), onclick: () => void turn({ isWhole: !is.isWhole }) }, "Whole file"),
          h("button", { "aria-pressed": String(isViewed(shown)), onclick: toggleViewed }, "Viewed"),
        ),
      ),
      latest && h("button", { class: "news", onclick: () => apply({ found: latest, shown: is }) }, `${news(latest)}: show`),
      why && h("p", { class: "calm" }, why),
      rows.length > 0 &&
        list.draw({ label: `Lines of ${shown.path}`, items: rows, key: (row) => row.key, guess, row: drawRow, redraw: show }),
    );
  }

  function show() {
    if (!answer) return;
    const shown = current();
    const own = finished().filter((each) => each.file === is.file);
    rows = buildRows({
      hunks: shown?.hunks ?? [],
      threads: answer.threads,
      drafts: own,
      composer: writing.span(),
      isSplit: isSplit(),
    });
    render();
    if (!root.isConnected) {
      // Nothing has a height yet.
      requestAnimationFrame(() => {
        if (!root.isConnected) return;
        show();
        revealFile();
      });
      return;
    }
    // Rows that turn out higher or lower than guessed need another drawing, and that seldom one more.
    for (let turns = 0; turns < 3 && list.measure(root); turns++) render();
  }

  function render() {
    /** @type {Map<string, number>} */
    const drafts = new Map();
    const unsent = finished();
    for (const each of unsent) drafts.set(each.file, (drafts.get(each.file) ?? 0) + 1);
    const files = answer.files.length > 0 && drawFiles(answer.files, { current: is.file, isViewed, drafts, open: (path) => void openFile(path), redraw: show });
    draw(root, [
      drawHead(answer, {
        previous: neighbour(-1),
        next: neighbour(1),
        refusal,
        isPast: isPast(),
        drafts: unsent.length,
        choose: (name) => void turn({ source: name, file: null }),
        end: (step) => void actions.end(step),
      }),
      h(
        "div",
        { key: "body", class: "review-body" },
        files && (narrow.matches ? h("details", { key: "files" }, h("summary", null, many(answer.files.length, "file")), files) : files),
        drawDiff(),
      ),
      answer.elsewhere.length > 0 &&
        h(
          "section",
          { key: "elsewhere", "aria-labelledby": "elsewhere-title" },
          h("h2", { id: "elsewhere-title" }, "Comments on files that do not differ ", h("span", { class: "mute" }, answer.elsewhere.length)),
          answer.elsewhere.map((/** @type {Thread} */ thread, /** @type {number} */ at) => [
            h("h3", { key: `name ${thread.first.id}` }, reveal(thread.first.file_path)),
            drawRow({ kind: "thread", key: `thread ${thread.first.id}`, thread, isApart: true }, at),
          ]),
        ),
      !isPast() &&
        unsent.length > 0 &&
        h(
          "div",
          { key: "sending", class: "sending" },
          h("span", null, `${many(unsent.length, "comment")} to send${answer.subject.agents[0] ? ` to ${answer.source?.agents[0] ?? answer.subject.agents[0]}` : ""}`),
          h("button", { class: "strong", onclick: () => void sendAll() }, `Send ${many(unsent.length, "comment")}`),
        ),
    ]);
  }

  redraw = () => {
    if (root.isConnected) show();
  };
  /** @param {number} step */
  const goReview = (step) => {
    const found = neighbour(step);
    if (found) go(`/review/${found.id}`);
  };
  const threadHere = () => {
    const row = rows.find((each) => each.key === selection.cursor());
    return row?.kind === "thread" ? row.thread : null;
  };
  return {
    refresh,
    tick: show,
    area: "work",
    pause: 1000,
    keys: {
      j: () => void selection.step(1),
      k: () => void selection.step(-1),
      J: () => selection.extend(1),
      K: () => selection.extend(-1),
      n: () => void stepComment(1),
      p: () => void stepComment(-1),
      l: () => void stepFile(1),
      h: () => void stepFile(-1),
      c: () => {
        const thread = threadHere();
        if (thread) writing.reply(thread);
        else writing.open();
      },
      e: () => {
        const thread = threadHere();
        if (thread && !isPast()) void resolve(thread);
      },
      v: toggleViewed,
      s: () => setView(view === "split" ? "unified" : "split"),
      S: () => void sendAll(),
      ">": () => goReview(1),
      "<": () => goReview(-1),
      Escape: () => selection.clear(),
    },
    help: [
      ["j k", "next, previous line"],
      ["J K", "choose several lines"],
      ["c", "comment, or reply to the comment"],
      ["e", "resolve or reopen the comment"],
      ["n p", "next, previous comment, then file"],
      ["l h", "next, previous file"],
      ["v", "viewed, and the next file"],
      ["s", "unified or split"],
      ["S", "send all comments"],
      ["> <", "next, previous review"],
    ],
  };
}

/** @param {Thread} thread */
const commentsOf = (thread) => [thread.first.id, ...thread.replies.map((/** @type {any} */ each) => each.id)];

/**
 * What is shown, with those changes that move nothing: whether comments are resolved and read, how many
 * there are, and how the review stands.
 * @param {any} shown
 * @param {any} found
 */
function mergeInPlace(shown, found) {
  const threads = new Map(found.threads.map((/** @type {Thread} */ each) => [each.first.id, each]));
  const isSame = shown.source?.head === found.source?.head;
  return {
    ...shown,
    subject: found.subject,
    files: isSame ? found.files : shown.files,
    threads: shown.threads.map((/** @type {Thread} */ each) => {
      const now = /** @type {Thread | undefined} */ (threads.get(each.first.id));
      return now ? { ...each, first: now.first, sent: now.sent } : each;
    }),
  };
}
