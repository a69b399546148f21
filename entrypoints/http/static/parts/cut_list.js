// A list of which the first rows are drawn, and the others when they are asked for.

import { h } from "./dom.js";

const SHOWN = 50;

/**
 * What cuts the lists of a page; it remembers which of them are shown whole.
 * @param {() => void} redraw
 */
export function createCut(redraw) {
  /** @type {Set<string>} */
  const whole = new Set();

  /**
   * @template T
   * @param {string} name that of the list
   * @param {T[]} items
   */
  const first = (name, items) => (whole.has(name) ? items : items.slice(0, SHOWN));

  /**
   * The rows of a list; the last one says how many there are besides.
   * @template T
   * @param {string} name that of the list
   * @param {T[]} items
   * @param {(item: T) => any} row
   */
  function rows(name, items, row) {
    const shown = first(name, items);
    const rest = items.length - shown.length;
    const open = () => (whole.add(name), redraw());
    return [shown.map(row), rest > 0 && h("li", { key: "more" }, h("button", { class: "quiet", onclick: open }, `and ${rest.toLocaleString("en")} more`))];
  }

  return { first, rows };
}
