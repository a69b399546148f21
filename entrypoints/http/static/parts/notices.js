// Short sentences at the edge of the page: what was done, with Undo, or why it was not.

import { draw, h, withCode } from "./dom.js";
import { call } from "./rpc.js";
import { showOwnChange } from "./stillness.js";

/** @typedef {{ id: number, text: string, isRefusal: boolean, undo: (() => void) | null }} Notice */

const SECONDS = 8;
const RECENT = 40;
/** @type {Notice[]} */
let notices = [];
let last = 0;

/**
 * @param {string} text
 * @param {{ isRefusal?: boolean, undo?: (() => void) | null }} [options]
 */
export function notify(text, { isRefusal = false, undo = null } = {}) {
  const notice = { id: ++last, text, isRefusal, undo };
  notices = [...notices.slice(-2), notice];
  show();
  setTimeout(() => dismiss(notice), SECONDS * 1000);
}

/** @param {Notice} notice */
function dismiss(notice) {
  notices = notices.filter((each) => each !== notice);
  show();
}

function show() {
  const place = /** @type {HTMLElement} */ (document.getElementById("notices"));
  draw(
    place,
    notices.map((each) =>
      h(
        "div",
        { key: each.id, class: each.isRefusal ? "notice refusal" : "notice" },
        h("span", null, withCode(each.text)),
        each.undo &&
          h("button", { onclick: () => (dismiss(each), each.undo?.()) }, "Undo"),
        h("button", { class: "quiet", "aria-label": "Close", onclick: () => dismiss(each) }, "✕"),
      ),
    ),
  );
}

/**
 * Call an operation that changes something, say that it was done, and offer to undo it.
 * @param {string} text what was done
 * @param {string} method
 * @param {Record<string, any>} params
 * @param {string | ((result: any) => string)} subject the id of a row that it changes, maybe told by its answer
 * @returns {Promise<any>}
 */
export async function act(text, method, params, subject) {
  const result = await call(method, params);
  const tx = await findChange(typeof subject === "string" ? subject : subject(result));
  notify(text, { undo: tx ? () => undo(tx) : null });
  return result;
}

/**
 * The transaction in which a person changed a row last, among the newest entries; null also if it
 * cannot be asked for: what was done stands, and only Undo is not offered.
 * @param {string} subject
 * @returns {Promise<string | null>}
 */
async function findChange(subject) {
  const { steps } = await call("history", { limit: RECENT }).catch(() => ({ steps: [] }));
  const isOwn = (/** @type {any} */ step) => !step.agent && step.entries.some((/** @type {any} */ each) => each.key === subject);
  return steps.find(isOwn)?.tx ?? null;
}

/** @param {string} tx */
async function undo(tx) {
  try {
    await call("undo", { tx });
    notify("Taken back.");
    await showOwnChange();
  } catch (error) {
    notify(/** @type {Error} */ (error).message, { isRefusal: true });
  }
}
