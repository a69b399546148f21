// The line or lines that a person has chosen in a diff, by pointer or by keys.

import { numberOn, sideOf } from "./rows.js";

/** @import { Line, Row, Span } from "./rows.js" */

/** The line of a row that a comment would be on: of two beside each other, the new one. @param {Row | undefined} row */
export function lineOf(row) {
  if (row?.kind === "line") return row.line;
  return row?.kind === "pair" ? row.right ?? row.left : null;
}

/**
 * @param {{ rows: () => Row[], show: () => void, reveal: (at: number) => void, root: HTMLElement, open: () => void }} given
 */
export function createSelection({ rows, show, reveal, root, open }) {
  let cursor = "";
  /** @type {{ side: string, number: number } | null} */
  let anchor = null;
  /** @type {Span | null} */
  let span = null;
  let isDragging = false;

  /** @param {Line} line */
  const startAt = (line) => {
    const side = sideOf(line);
    const number = numberOn(line, side) ?? 0;
    anchor = { side, number };
    span = { side, line: number, last_line: number };
  };

  /** @param {Line} line */
  function reach(line) {
    if (!anchor) return startAt(line);
    if ((anchor.side === "old") !== (line.type === "removed")) return;
    const number = numberOn(line, anchor.side);
    if (number === null) return;
    span = { side: anchor.side, line: Math.min(anchor.number, number), last_line: Math.max(anchor.number, number) };
  }

  /** @param {Line} line */
  const keyOf = (line) => rows().find((row) => (row.kind === "line" && row.line === line) || (row.kind === "pair" && (row.left === line || row.right === line)))?.key ?? "";

  const events = {
    press(/** @type {Line} */ line, /** @type {PointerEvent} */ event) {
      if (event.button !== 0) return;
      event.preventDefault();
      if (event.shiftKey && anchor) reach(line);
      else startAt(line);
      cursor = keyOf(line);
      isDragging = true;
      addEventListener("pointerup", finish, { once: true });
      show();
    },
    over(/** @type {Line} */ line, /** @type {PointerEvent} */ event) {
      if (!isDragging || !(event.buttons & 1)) return;
      reach(line);
      show();
    },
    click(/** @type {Line} */ line) {
      startAt(line);
      cursor = keyOf(line);
      open();
    },
  };

  function finish() {
    if (!isDragging) return;
    isDragging = false;
    if (root.isConnected) open();
  }

  function focus() {
    const at = rows().findIndex((row) => row.key === cursor);
    reveal(at);
    show();
    const box = root.querySelector(`[data-list] > [data-at="${at}"]`);
    const numbers = box?.querySelectorAll("button");
    /** @type {HTMLElement | undefined} */ (numbers?.[numbers.length - 1] && (box?.matches(".thread") ? numbers[0] : numbers[numbers.length - 1]))?.focus({ preventScroll: true });
  }

  return {
    events,
    cursor: () => cursor,
    span: () => span,
    focus,

    /** The lines to comment on: those that are chosen, else the one of the cursor. */
    chosen() {
      const line = lineOf(rows().find((row) => row.key === cursor));
      if (!span && line) startAt(line);
      return span;
    },

    /** Choose nothing. */
    clear() {
      anchor = null;
      span = null;
      show();
    },

    /** Choose nothing, for other lines. */
    forget() {
      cursor = "";
      anchor = null;
      span = null;
    },

    /**
     * Move the cursor to the next row of a kind; returns whether there is one.
     * @param {number} step
     * @param {(row: Row) => boolean} [wanted]
     */
    step(step, wanted = (row) => row.kind === "line" || row.kind === "pair" || row.kind === "thread") {
      const all = rows();
      let at = all.findIndex((row) => row.key === cursor);
      if (at < 0 && step < 0) at = all.length;
      do at += step;
      while (at >= 0 && at < all.length && !wanted(all[at]));
      if (at < 0 || at >= all.length) return false;
      cursor = all[at].key;
      anchor = null;
      span = null;
      focus();
      return true;
    },

    /** Choose the next line too. @param {number} step */
    extend(step) {
      const all = rows();
      let at = all.findIndex((row) => row.key === cursor);
      const line = lineOf(all[at]);
      if (!anchor && line) startAt(line);
      do at += step;
      while (at >= 0 && at < all.length && !isOn(all[at]));
      const next = at >= 0 && at < all.length ? lineOf(all[at]) : null;
      if (!next) return;
      cursor = all[at].key;
      reach(next);
      focus();
    },
  };

  /** @param {Row} row */
  function isOn(row) {
    const line = lineOf(row);
    return line !== null && anchor !== null && (anchor.side === "old") === (line.type === "removed");
  }
}
