// Comments: a thread with its replies, a draft that was not sent, and where one is written.

import { h } from "../../parts/dom.js";
import { ago, exact } from "../../parts/format.js";
import { reveal, revealText } from "./names.js";

/** @import { Draft, Thread } from "./rows.js" */

const STATES = /** @type {Record<string, string>} */ ({
  moved: "its lines have moved",
  outdated: "its lines were changed or removed",
});
const READING = /** @type {Record<string, string>} */ ({
  pending: "not marked as read",
  read: "read",
  responded: "answered",
});

/**
 * @param {{ line: number, last_line: number }} span
 */
export const linesOf = (span) => (span.last_line > span.line ? `lines ${span.line}–${span.last_line}` : `line ${span.line}`);

/** @param {{ to: string, at: string, status: string } | undefined} sent */
function sentNote(sent) {
  if (!sent) return null;
  return h(
    "span",
    { class: "mute" },
    `sent to ${sent.to} `,
    h("time", { datetime: sent.at, title: exact(sent.at) }, `${ago(sent.at)} ago`),
    `, ${READING[sent.status] ?? sent.status}`,
  );
}

/** @param {any} comment @param {Thread} thread */
function drawComment(comment, thread) {
  return h(
    "li",
    { key: comment.id, class: "comment" },
    h(
      "div",
      { class: "by" },
      h("b", null, comment.author),
      h("time", { datetime: comment.created_at, title: exact(comment.created_at) }, `${ago(comment.created_at)} ago`),
      sentNote(thread.sent[comment.id]),
    ),
    h("p", { class: "prose" }, comment.body),
  );
}

/**
 * @param {Thread} thread
 * @param {{ isApart: boolean, isFolded: boolean, isPast: boolean, isChosen: boolean, at: number, key: string,
 *   fold: () => void, reply: () => void, resolve: () => void }} options
 */
export function drawThread(thread, { isApart, isFolded, isPast, isChosen, at, key, fold, reply, resolve }) {
  const { first } = thread;
  const state = STATES[thread.state];
  const isElsewhere = isApart || thread.state === "outdated";
  const name = `${first.author} on ${linesOf(thread)}`;
  return h(
    "article",
    {
      key,
      "data-at": String(at),
      "data-comment": first.id,
      class: `thread${first.resolved ? " resolved" : ""}${isChosen ? " chosen" : ""}`,
      "aria-label": `Comment of ${name}`,
    },
    h(
      "div",
      { class: "about-lines" },
      h("button", { class: "quiet", "aria-expanded": String(!isFolded), onclick: fold }, isFolded ? "▸" : "▾", ` ${linesOf(thread)}`),
      thread.side === "old" && h("span", { class: "mute" }, "before the change"),
      state && h("span", { class: "mute" }, state),
      first.resolved && h("span", { class: "mute" }, "● resolved"),
      isFolded && h("span", { class: "mute start" }, `${first.author}: ${first.body.split("\n")[0]}`),
    ),
    !isFolded && isElsewhere && first.line_text && h("pre", { class: "then" }, reveal(first.line_text)),
    !isFolded && h("ol", null, [first, ...thread.replies].map((each) => drawComment(each, thread))),
    !isFolded &&
      !isPast &&
      h(
        "div",
        { class: "buttons" },
        h("button", { onclick: reply, "aria-label": `Reply to ${name}` }, "Reply"),
        h("button", { onclick: resolve, "aria-label": `${first.resolved ? "Reopen" : "Resolve"} the comment of ${name}` }, first.resolved ? "Reopen" : "Resolve"),
      ),
  );
}

/**
 * @param {Draft} draft
 * @param {{ at: number, key: string, edit: () => void, remove: () => void }} options
 */
export function drawDraft(draft, { at, key, edit, remove }) {
  return h(
    "article",
    { key, "data-at": String(at), class: "thread draft", "aria-label": `Draft on ${linesOf(draft)}` },
    h("div", { class: "about-lines" }, h("b", null, "Not sent"), h("span", { class: "mute" }, draft.reply_to ? "reply" : linesOf(draft))),
    h("p", { class: "prose" }, draft.body),
    h("div", { class: "buttons" }, h("button", { onclick: edit }, "Edit"), h("button", { onclick: remove }, "Discard")),
  );
}

/**
 * @param {{ at: number, key: string, about: string, text: string, write: (text: string) => void, save: () => void,
 *   send: () => void, cancel: () => void }} options
 */
export function drawComposer({ at, key, about, text, write, save, send, cancel }) {
  return h(
    "div",
    { key, "data-at": String(at), class: "thread composer" },
    h("label", { for: "composer-text", class: "mute" }, revealText(about)),
    h("textarea", {
      id: "composer-text",
      rows: "3",
      value: text,
      placeholder: "What should change, and why",
      oninput: (/** @type {Event} */ event) => write(/** @type {HTMLTextAreaElement} */ (event.currentTarget).value),
      onkeydown: (/** @type {KeyboardEvent} */ event) => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
          event.preventDefault();
          save();
        } else if (event.key === "Escape") {
          event.preventDefault();
          cancel();
        }
      },
    }),
    h(
      "div",
      { class: "buttons" },
      h("button", { class: "strong", onclick: save, title: "Ctrl Enter" }, "Add to review"),
      h("button", { onclick: send }, "Send now"),
      h("button", { class: "quiet", onclick: cancel, title: "Escape" }, "Cancel"),
    ),
  );
}
