// The moment that the pages show: now, or an earlier position of the journal. Everything that asks
// for the time, for an address or for the server's answers goes by it.

import { withRepository } from "./repository.js";

/** @typedef {{ seq: number, time: string }} Moment */

/** @type {Moment | null} */
let shown = null;

/** The earlier moment that is shown; null for now. */
export const shownMoment = () => shown;

/** Whether an earlier moment is shown, which can only be read. */
export const isPast = () => shown !== null;

/** @param {Moment | null} moment */
export function setMoment(moment) {
  shown = moment;
}

/** The time of the moment that is shown, in milliseconds: durations end there. */
export const clock = () => (shown ? Date.parse(shown.time) : Date.now());

/**
 * A path of a page, at the moment and of the repository that are shown unless it names others itself.
 * @param {string} path
 */
export function addressOf(path) {
  if (!shown || !path.startsWith("/")) return withRepository(path);
  const [place, query] = path.split("?");
  const asked = new URLSearchParams(query);
  if (!asked.has("at")) asked.set("at", String(shown.seq));
  return withRepository(`${place}?${asked}`);
}
