// What a person has written and not sent, and which files were viewed: kept in the browser, per review.

/** @import { Draft } from "./rows.js" */
/** @typedef {{ drafts: Draft[], viewed: Record<string, string> }} Kept */

/** @param {string} id */
const nameOf = (id) => `herdbook.review.${id}`;

/**
 * What is kept of a review.
 * @param {string} id
 * @returns {Kept}
 */
export function readKept(id) {
  try {
    const found = JSON.parse(localStorage.getItem(nameOf(id)) ?? "{}");
    return { drafts: Array.isArray(found.drafts) ? found.drafts : [], viewed: found.viewed ?? {} };
  } catch {
    return { drafts: [], viewed: {} };
  }
}

/**
 * @param {string} id
 * @param {Kept} kept
 */
export function saveKept(id, kept) {
  if (kept.drafts.length || Object.keys(kept.viewed).length) localStorage.setItem(nameOf(id), JSON.stringify(kept));
  else localStorage.removeItem(nameOf(id));
}

/** A name for a new draft, unique in this browser. */
export const newDraftId = () => crypto.randomUUID();
