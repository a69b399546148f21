// Keeps what a list shows in its places while a person points at it: what would move them waits
// behind a button, and is shown when the pointer leaves. What the person did is shown at once.

import { h } from "./dom.js";
import { shownMoment } from "./moment.js";

/** @type {{ root: HTMLElement, refresh: () => Promise<void> } | null} */
let shown = null;
let isOwn = false;

/** Read again what is shown, and show it wherever the pointer is: the person has changed it. */
export async function showOwnChange() {
  if (!shown?.root.isConnected) return;
  isOwn = true;
  await shown.refresh();
}

/**
 * How many things came, went or changed their place.
 * @param {Map<string, string>} before the place of each, by its id
 * @param {Map<string, string>} now
 */
export function countChanges(before, now) {
  const gone = [...before.keys()].filter((id) => !now.has(id));
  const changed = [...now].filter(([id, place]) => before.get(id) !== place);
  return gone.length + changed.length;
}

/** Whether the keyboard is in what keeps its places. @param {HTMLElement} root */
export const hasFocus = (root) => root.querySelector(".still :focus-visible") !== null;

/**
 * @param {{ root: HTMLElement, refresh: () => Promise<void>, release: () => void, isBusy?: () => boolean }} options
 *   `release` shows what waits, if anything does; `isBusy` tells of another reason to keep still
 */
export function createStillness({ root, refresh, release, isBusy = () => false }) {
  let isPointed = false;
  /** The moment of what is shown, once anything is. @type {number | null | undefined} */
  let moment;
  shown = { root, refresh };
  isOwn = false;

  const isStill = () => isPointed || isBusy();

  function settle() {
    if (!isStill()) release();
  }

  function press() {
    const isByKey = hasFocus(root);
    release();
    if (isByKey) /** @type {HTMLElement | null} */ (root.querySelector(".still .windowed"))?.focus();
  }

  return {
    isStill,
    settle,

    /** Whether an answer that came has to wait, because it is not what the person did or asked for. */
    mustWait() {
      const at = shownMoment()?.seq ?? null;
      const must = at === moment && !isOwn && isStill();
      isOwn = false;
      moment = at;
      return must;
    },

    /**
     * Draw what keeps its places, and what waits in words.
     * @param {string} words
     * @param {...any} children
     */
    draw: (words, ...children) =>
      h(
        "div",
        {
          key: "still",
          class: "still",
          onpointerenter: () => (isPointed = true),
          onpointerleave: () => {
            isPointed = false;
            settle();
          },
          // Where the focus goes is known only then.
          onfocusout: () => setTimeout(settle),
        },
        words && h("button", { key: "fresh", class: "fresh", onclick: press }, words),
        children,
      ),
  };
}
