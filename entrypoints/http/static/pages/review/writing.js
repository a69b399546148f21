// Writing a comment: on the lines that are chosen, as a reply, or a draft again.

import { isPast } from "../../parts/moment.js";
import { newDraftId } from "./drafts.js";
import { isWithin } from "./rows.js";
import { linesOf } from "./thread.js";

/** @import { Draft, Hunk, Line, Span, Thread } from "./rows.js" */

/**
 * @param {{ answer: () => any, kept: () => { drafts: Draft[] }, keep: (drafts: Draft[]) => void,
 *   selection: ReturnType<typeof import("./selection.js").createSelection>, file: () => string,
 *   send: (drafts: Draft[]) => Promise<boolean>, show: () => void, root: HTMLElement }} given
 */
export function createWriting({ answer, kept, keep, selection, file, send, show, root }) {
  /** @type {Draft | null} */
  let draft = null;

  /** The lines of a span, as they are shown. @param {Span} span @returns {Line[]} */
  function linesIn(span) {
    const shown = answer().files.find((/** @type {any} */ each) => each.path === file());
    return (shown?.hunks ?? []).flatMap((/** @type {Hunk} */ hunk) => hunk.lines.filter((line) => isWithin(line, span)));
  }

  /** @param {Draft} to */
  function begin(to) {
    draft = to;
    show();
    /** @type {HTMLElement | null} */ (root.querySelector("#composer-text"))?.focus();
    root.querySelector(".composer")?.scrollIntoView({ block: "nearest" });
  }

  function open() {
    const span = selection.chosen();
    if (!span || isPast() || !answer().subject.phase_id) return;
    const lines = linesIn(span);
    const type = span.side === "old" ? "removed" : lines.some((each) => each.type === "added") ? "added" : "context";
    const text = lines.map((each) => each.text).join("\n");
    const body = draft && !draft.reply_to ? draft.body : "";
    begin({ ...span, id: newDraftId(), file: file(), type, text, body, reply_to: null, commit: answer().source.head });
  }

  function close() {
    draft = null;
  }

  function save() {
    if (!draft?.body.trim()) return;
    const saved = draft;
    close();
    keep([...kept().drafts.filter((each) => each.id !== saved.id), saved]);
    selection.clear();
    selection.focus();
  }

  return {
    open,
    close,
    editing: () => draft?.id ?? null,
    /** The lines below which it is written. @returns {Span | null} */
    span: () => draft,

    /** @param {Thread} thread */
    reply(thread) {
      if (isPast()) return;
      const { side, line, last_line, first } = thread;
      begin({ id: newDraftId(), file: file(), side, line, last_line, type: first.line_type, text: "", body: "", reply_to: first.id, commit: null });
    },

    /** @param {Draft} known */
    edit: (known) => begin({ ...known }),

    /** @param {Draft} known */
    remove(known) {
      keep(kept().drafts.filter((each) => each.id !== known.id));
      show();
    },

    options: () => ({
      about: draft?.reply_to ? "Reply" : `Comment on ${draft ? linesOf(draft) : ""} of ${file()}`,
      text: draft?.body ?? "",
      write: (/** @type {string} */ text) => {
        if (draft) draft = { ...draft, body: text };
      },
      save,
      send: async () => {
        if (!draft?.body.trim()) return;
        const sent = draft;
        if (await send([sent])) {
          close();
          selection.clear();
          selection.focus();
        }
      },
      cancel: () => {
        close();
        selection.clear();
        selection.focus();
      },
    }),
  };
}
