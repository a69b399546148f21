// Reads the newest entries of the journal.

import { call, Refusal } from "./rpc.js";

/**
 * The entries after a number, oldest first; if some of them were folded, those that are left.
 * @param {number} seq
 * @param {number} limit
 * @returns {Promise<any[]>}
 */
export async function entriesAfter(seq, limit) {
  try {
    return await call("journal.since", { seq: Math.max(0, seq), limit });
  } catch (error) {
    const first = error instanceof Refusal ? error.data?.first : null;
    if (typeof first !== "number" || first <= seq + 1) throw error;
    return entriesAfter(first - 1, limit);
  }
}

/**
 * The newest entries, oldest first: at least so many, if there are.
 * @param {number} count
 * @returns {Promise<any[]>}
 */
export async function newestEntries(count) {
  const { spaces } = await call("status");
  // The last entry that somebody made; a few that follow from it may stand after it.
  const last = spaces[0].last_entry?.seq ?? 0;
  return entriesAfter(last - count, 2 * count + 100);
}
