// Keeps late answers from being shown in place of newer ones.

import { shownMoment } from "./moment.js";

/**
 * Questions of which only the last counts. Each call begins one and gives a function that tells whether
 * its answer may be shown: nothing was asked since, and the moment that is shown is the same.
 * @returns {() => () => boolean}
 */
export function createTurns() {
  let last = 0;
  return () => {
    const own = ++last;
    const moment = shownMoment()?.seq;
    return () => own === last && moment === shownMoment()?.seq;
  };
}
