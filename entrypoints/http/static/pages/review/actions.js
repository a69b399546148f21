// What a person does in a review: send comments, resolve one, and end the review.

import { many } from "../../parts/format.js";
import { act, notify } from "../../parts/notices.js";

/** @import { Draft, Thread } from "./rows.js" */

/**
 * @param {{ answer: () => any, sent: (drafts: Draft[]) => void, again: () => Promise<void>, refuse: (reason: string) => void }} given
 *   `again` reads everything again, `refuse` says a refusal in its place
 */
export function createActions({ answer, sent, again, refuse }) {
  /**
   * @param {() => Promise<any>} change
   * @returns {Promise<boolean>} whether it was not refused
   */
  async function attempt(change) {
    try {
      await change();
      refuse("");
      await again();
      return true;
    } catch (error) {
      refuse(/** @type {Error} */ (error).message);
      return false;
    }
  }

  return {
    /** Send drafts, all together. @param {Draft[]} drafts */
    async send(drafts) {
      if (!drafts.length) return false;
      const { subject, source } = answer();
      const comments = drafts.map((each) =>
        each.reply_to
          ? { reply_to: each.reply_to, body: each.body }
          : { file: each.file, line: each.line, last_line: each.last_line, type: each.type, commit: each.commit, body: each.body },
      );
      const params = { subject: subject.id, comments, ...(source ? { source: source.name } : {}) };
      return attempt(async () => {
        const told = await act(`${many(drafts.length, "comment")} sent`, "review.submit", params, (result) => result.comments[0].id);
        if (!told.to) notify("The comments are stored; no agent that worked on it is known.");
        sent(drafts);
      });
    },

    /** Resolve a thread, or reopen it. @param {Thread} thread */
    resolve({ first }) {
      const method = first.resolved ? "review.unresolve" : "review.resolve";
      return attempt(() => act(first.resolved ? "Comment reopened" : "Comment resolved", method, { comment: first.id }, first.id));
    },

    /** End the review by one of its operations. @param {{ label: string, method: string, params: Record<string, any> }} step */
    end(step) {
      const { subject } = answer();
      return attempt(() => act(`${subject.name}: ${step.label}`, step.method, step.params, subject.id));
    },
  };
}
