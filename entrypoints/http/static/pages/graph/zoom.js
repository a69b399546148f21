// Looks at a part of a drawing: the wheel scrolls it, with Ctrl it zooms, dragging moves it, and keys
// do the same. The drawing stays a scrolling box, so that scroll bars and touch work as everywhere.

import { h } from "../../parts/dom.js";

const LEAST = 0.25;
const MOST = 3;
const STEP = 1.25;
const ARROW = 60;
/** @type {Record<string, [number, number]>} */
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/**
 * @param {HTMLElement} root
 * @param {() => void} redraw
 */
export function viewOf(root, redraw) {
  let scale = 1;
  /** @type {{ x: number, y: number, left: number, top: number } | null} */
  let dragged = null;

  const box = () => /** @type {HTMLElement | null} */ (root.querySelector(".drawing"));
  const svg = () => /** @type {SVGSVGElement | null} */ (box()?.querySelector(":scope > svg"));

  /** Give the drawing its size at this scale. */
  function apply() {
    const drawn = svg();
    if (!drawn) return;
    drawn.setAttribute("width", String(Number(drawn.dataset.across) * scale));
    drawn.setAttribute("height", String(Number(drawn.dataset.down) * scale));
  }

  /**
   * Change the scale; what is at a point of the window stays there.
   * @param {number} to
   * @param {{ x: number, y: number }} [at]
   */
  function setScale(to, at) {
    const frame = box();
    if (!frame) return;
    const before = scale;
    scale = Math.max(LEAST, Math.min(MOST, to));
    const { left, top, width, height } = frame.getBoundingClientRect();
    const x = at ? at.x - left : width / 2;
    const y = at ? at.y - top : height / 2;
    const [middleX, middleY] = [(frame.scrollLeft + x) / before, (frame.scrollTop + y) / before];
    redraw();
    frame.scrollLeft = middleX * scale - x;
    frame.scrollTop = middleY * scale - y;
  }

  /** @param {number} steps */
  const zoom = (steps) => setScale(scale * STEP ** steps);

  /** Show all of it, if that can still be read. */
  function fit() {
    const frame = box();
    const drawn = svg();
    if (!frame || !drawn) return;
    const wide = frame.clientWidth / Number(drawn.dataset.across);
    const high = frame.clientHeight / Number(drawn.dataset.down);
    setScale(scale === 1 ? Math.min(1, wide, high) : 1);
  }

  /** @param {string} id */
  function reveal(id) {
    root.querySelector(`#box-${CSS.escape(id)}`)?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  const handlers = {
    onwheel: (/** @type {WheelEvent} */ event) => {
      if (!event.ctrlKey && !event.metaKey) return; // the box scrolls
      event.preventDefault();
      setScale(scale * STEP ** -Math.sign(event.deltaY), { x: event.clientX, y: event.clientY });
    },
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      const way = ARROWS[event.key];
      const frame = box();
      if (!way || !frame || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      frame.scrollBy(way[0] * ARROW, way[1] * ARROW);
    },
    onpointerdown: (/** @type {PointerEvent} */ event) => {
      const frame = box();
      const isOnTask = /** @type {Element} */ (event.target).closest("a, .phase") !== null;
      if (!frame || event.pointerType !== "mouse" || event.button !== 0 || isOnTask) return;
      dragged = { x: event.clientX, y: event.clientY, left: frame.scrollLeft, top: frame.scrollTop };
      frame.setPointerCapture(event.pointerId);
    },
    onpointermove: (/** @type {PointerEvent} */ event) => {
      const frame = box();
      if (!dragged || !frame) return;
      frame.scrollLeft = dragged.left - (event.clientX - dragged.x);
      frame.scrollTop = dragged.top - (event.clientY - dragged.y);
    },
    onpointerup: () => (dragged = null),
    onpointercancel: () => (dragged = null),
  };

  const buttons = () =>
    h(
      "span",
      { key: "zoom", class: "zoom" },
      h("button", { class: "quiet", title: "-", "aria-label": "Smaller", onclick: () => zoom(-1) }, "−"),
      h("button", { class: "quiet", title: "All of it, or as it is (0)", onclick: fit }, `${Math.round(scale * 100)}%`),
      h("button", { class: "quiet", title: "+", "aria-label": "Larger", onclick: () => zoom(1) }, "+"),
    );

  return { apply, zoom, fit, reveal, handlers, buttons };
}
