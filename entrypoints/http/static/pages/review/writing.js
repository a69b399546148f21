// Writing a comment: on the lines that are chosen, as a reply, or a draft again. What is written is
// kept with every letter, so that it is a draft wherever the person goes.

import { isPast } from "../../parts/moment.js";
import { newDraftId } from "./drafts.js";
import { isWithin } from "./rows.js";
import { linesOf } from "./thread.js";

/** @import { Draft, Hunk, Line, Span, Thread } from "./rows.js" */

/**
 * @param {{ answer: () => any, kept: () => { drafts: Draft[] }, keep: (change: (drafts: Draft[]) => Draft[]) => void,
 *   selection: ReturnType<typeof import("./selection.js").createSelection>, file: () => string,
 *   send: (drafts: Draft[]) => Promise<boolean>, show: () => void, root: HTMLElement }} given
 */
export function createWriting({ answer, kept, keep, selection, file, send, show, root }) {
  /** @type {Draft | null} */
  let draft = null;
  /** What was kept of it before. @type {Draft | null} */
  let before = null;

  /** The lines of a span, as they are shown. @param {Span} span @returns {Line[]} */
  function linesIn(span) {
    const shown = answer().files.find((/** @type {any} */ each) => each.path === file());
    return (shown?.hunks ?? []).flatMap((/** @type {Hunk} */ hunk) => hunk.lines.filter((line) => isWithin(line, span)));
  }

  /** @param {Draft} to */
  function begin(to) {
    if (to.id !== draft?.id) before = kept().drafts.find((each) => each.id === to.id) ?? null;
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
    const moved = draft && !draft.reply_to ? draft : null;
    begin({ ...span, id: moved?.id ?? newDraftId(), file: file(), type, text, body: moved?.body ?? "", reply_to: null, commit: answer().source.head });
    keepAs(draft);
  }

  function close() {
    draft = null;
  }

  /** Keep what is written as this; nothing, or nothing but space, as what was there before. @param {Draft | null} written */
  function keepAs(written) {
    const stays = written?.body.trim() ? written : before;
    keep((drafts) => [...drafts.filter((each) => each.id !== draft?.id), ...(stays ? [stays] : [])]);
  }

  function save() {
    if (!draft?.body.trim()) return;
    keepAs(draft);
    close();
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
      keep((drafts) => drafts.filter((each) => each.id !== known.id));
      show();
    },

    options: () => ({
      about: draft?.reply_to ? "Reply" : `Comment on ${draft ? linesOf(draft) : ""} of ${file()}`,
      text: draft?.body ?? "",
      write: (/** @type {string} */ text) => {
        if (!draft) return;
        draft = { ...draft, body: text };
        keepAs(draft);
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
        keepAs(null);
        close();
        selection.clear();
        selection.focus();
      },
    }),
  };
}
