// A list of any length of which only the rows that can be seen are in the document. It remembers how
// far it was scrolled, also for another page and back.

import { h } from "./dom.js";

/** @typedef {{ top: number, height: number, redraw: () => void }} View */

const BEYOND = 4;
/** At most so many rows are drawn, however high the box is. */
const MOST = 200;
/** @type {Map<string, View>} */
const views = new Map();
/** What each box shows that is in the document. @type {WeakMap<Element, View>} */
const boxes = new WeakMap();
/** Tells when a box comes into the document, is seen again or gets another height. */
const sizes = new ResizeObserver((entries) => {
  const redraws = new Set();
  for (const { target } of entries) {
    const view = boxes.get(target);
    if (!view || !target.clientHeight) continue;
    target.scrollTop = view.top;
    view.top = target.scrollTop;
    if (target.clientHeight > view.height) redraws.add(view.redraw);
    view.height = target.clientHeight;
  }
  for (const redraw of redraws) redraw();
});

/**
 * Find the box of a list once it is in the document, and follow its size.
 * @param {string} name
 * @param {View} view
 */
function follow(name, view) {
  const box = document.querySelector(`[data-list="${name}"]`);
  if (!box || boxes.has(box)) return;
  boxes.set(box, view);
  sizes.observe(box);
}

/**
 * @template T
 * @param {{ name: string, label: string, items: T[], rowHeight: number, tag?: string,
 *   row: (item: T, at: number) => any, redraw: () => void, foot?: any }} options
 *   `name` is that of the list, `row` draws an item, which must be `rowHeight` pixels high
 * @returns {import("./dom.js").Drawing}
 */
export function windowed({ name, label, items, rowHeight, row, redraw, foot, tag = "ul" }) {
  const view = views.get(name) ?? { top: 0, height: 720, redraw };
  view.redraw = redraw;
  views.set(name, view);
  requestAnimationFrame(() => follow(name, view));
  const count = Math.min(MOST, Math.ceil(view.height / rowHeight) + 2 * BEYOND);
  const first = Math.max(0, Math.min(Math.floor(view.top / rowHeight) - BEYOND, items.length - count));
  const shown = items.slice(first, first + count);
  const below = Math.max(0, items.length - first - shown.length);
  return h(
    "div",
    {
      class: "windowed",
      key: `list ${name}`,
      "data-list": name,
      tabindex: "0",
      role: "group",
      "aria-label": label,
      onscroll: (/** @type {Event} */ event) => {
        const box = /** @type {HTMLElement} */ (event.currentTarget);
        if (!box.clientHeight) return;
        const before = Math.floor(view.top / rowHeight);
        view.top = box.scrollTop;
        view.height = box.clientHeight;
        if (Math.floor(view.top / rowHeight) !== before) requestAnimationFrame(redraw);
      },
    },
    h("div", { class: "above", style: { height: `${first * rowHeight}px` } }),
    h(tag, { class: "rows", "aria-label": label }, shown.map((item, at) => row(item, first + at))),
    h("div", { class: "below", style: { height: `${below * rowHeight}px` } }),
    foot,
  );
}
