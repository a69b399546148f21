// A list of any length whose rows have any height: only those that can be seen are in the document.
// A row that was not drawn yet has an estimated height; when a drawn one is higher or lower, what is
// seen stays where it is.

import { h } from "./dom.js";

const BEYOND = 400;
const TALLEST = 720;

/**
 * @template T
 * @typedef {{ label: string, items: T[], key: (item: T) => string, guess: (item: T, width: number) => number,
 *   row: (item: T, at: number) => any, redraw: () => void }} MeasuredOptions
 */

/**
 * A list that remembers the heights of its rows and how far it is scrolled.
 * @param {string} name
 */
export function createMeasured(name) {
  /** @type {Map<string, number>} */
  const heights = new Map();
  let top = 0;
  let height = TALLEST;
  let width = 0;
  let isPlanned = false;
  /** @type {number[]} */
  let offsets = [0];
  /** @type {string[]} */
  let keys = [];

  /** The index of the row at a distance from the beginning. @param {number} distance */
  function indexAt(distance) {
    let low = 0;
    let high = keys.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (offsets[middle + 1] <= distance) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** @param {ParentNode} root */
  const boxIn = (root) => /** @type {HTMLElement | null} */ (root.querySelector(`[data-list="${name}"]`));

  return {
    /** Forget where it was scrolled to, and all heights. */
    reset() {
      heights.clear();
      top = 0;
    },

    /**
     * @template T
     * @param {MeasuredOptions<T>} options
     */
    draw({ label, items, key, guess, row, redraw }) {
      keys = items.map(key);
      offsets = new Array(items.length + 1);
      offsets[0] = 0;
      for (let at = 0; at < items.length; at++) {
        offsets[at + 1] = offsets[at] + (heights.get(keys[at]) ?? guess(items[at], width));
      }
      const first = indexAt(Math.max(0, top - BEYOND));
      const end = Math.min(items.length, indexAt(top + height + BEYOND) + 1);
      return h(
        "div",
        {
          class: "windowed measured",
          key: `list ${name}`,
          "data-list": name,
          tabindex: "0",
          role: "group",
          "aria-label": label,
          onscroll: (/** @type {Event} */ event) => {
            const box = /** @type {HTMLElement} */ (event.currentTarget);
            top = box.scrollTop;
            height = box.clientHeight;
            if (isPlanned) return;
            isPlanned = true;
            requestAnimationFrame(() => {
              isPlanned = false;
              redraw();
            });
          },
        },
        h("div", { key: "above", style: { height: `${offsets[first]}px` } }),
        items.slice(first, end).map((item, at) => row(item, first + at)),
        h("div", { key: "below", style: { height: `${offsets[items.length] - offsets[end]}px` } }),
      );
    },

    /**
     * Measure what was drawn; returns whether anything has another height than it was given.
     * @param {ParentNode} root
     */
    measure(root) {
      const box = boxIn(root);
      if (!box?.clientWidth) return false;
      height = box.clientHeight || TALLEST;
      let isChanged = false;
      if (width !== box.clientWidth) {
        isChanged = width !== 0 || heights.size > 0;
        width = box.clientWidth;
        heights.clear();
      }
      const seen = indexAt(top);
      let above = 0;
      for (const each of box.children) {
        const at = Number(/** @type {HTMLElement} */ (each).dataset.at ?? -1);
        if (at < 0 || keys[at] === undefined) continue;
        const now = each.getBoundingClientRect().height;
        const given = offsets[at + 1] - offsets[at];
        if (heights.get(keys[at]) !== now) heights.set(keys[at], now);
        if (Math.abs(now - given) < 0.5) continue;
        isChanged = true;
        if (at < seen) above += now - given;
      }
      if (above && box.scrollTop > 0) {
        box.scrollTop += above;
        top = box.scrollTop;
      }
      return isChanged;
    },

    /**
     * Scroll so far that a row can be seen, with some around it.
     * @param {ParentNode} root
     * @param {number} at
     */
    reveal(root, at) {
      const box = boxIn(root);
      if (!box || at < 0 || at >= keys.length) return;
      const room = Math.min(80, height / 4);
      if (offsets[at] - room < top) top = Math.max(0, offsets[at] - room);
      else if (offsets[at + 1] + room > top + height) top = offsets[at + 1] + room - height;
      else return;
      box.scrollTop = top;
    },

    /** The index of the first row that can be seen. */
    firstSeen: () => Math.min(indexAt(top), Math.max(0, keys.length - 1)),
  };
}
