// Dragging over a drawing to choose a part of it.

/** How far a pointer moves until it drags. */
const DRAG = 4;

/**
 * Follow a pointer that was pressed on a row until it is released.
 * @param {PointerEvent} event
 * @param {{ x: number, width: number, move: (from: number, to: number) => void, end: (from: number, to: number) => void }} options
 *   `x` is where it was pressed, from the left of the drawing; `end` is called if it was dragged
 */
export function followBrush(event, { x, width, move, end }) {
  if (event.button !== 0 || event.pointerType === "touch" || x < 0) return;
  const row = /** @type {HTMLElement} */ (event.currentTarget);
  const left = event.clientX - x;
  let to = x;
  let isDragged = false;
  /** @param {PointerEvent} moved */
  const follow = (moved) => {
    to = Math.max(0, Math.min(width, moved.clientX - left));
    if (!isDragged && Math.abs(to - x) < DRAG) return;
    if (!isDragged) row.setPointerCapture(event.pointerId);
    isDragged = true;
    move(x, to);
  };
  const stop = () => {
    row.removeEventListener("pointermove", follow);
    row.removeEventListener("pointerup", stop);
    row.removeEventListener("pointercancel", stop);
    if (isDragged) end(Math.min(x, to), Math.max(x, to));
  };
  row.addEventListener("pointermove", follow);
  row.addEventListener("pointerup", stop);
  row.addEventListener("pointercancel", stop);
}
