// The rows of a file's diff: its lines, unified or side by side, with threads and drafts below them.

/**
 * @typedef {{ type: string, old: number | null, new: number | null, text: string, is_open: boolean, more: number }} Line
 * @typedef {{ old_start: number, old_count: number, new_start: number, new_count: number, heading: string, lines: Line[] }} Hunk
 * @typedef {{ first: any, replies: any[], sent: Record<string, { to: string, at: string, status: string }>,
 *   side: string, line: number, last_line: number, state: string }} Thread
 * @typedef {{ id: string, file: string, side: string, line: number, last_line: number, type: string, text: string,
 *   body: string, reply_to: string | null, commit: string | null }} Draft
 * @typedef {{ side: string, line: number, last_line: number }} Span
 * @typedef {{ kind: "hunk", key: string, hunk: Hunk }} HunkRow
 * @typedef {{ kind: "line", key: string, line: Line }} LineRow
 * @typedef {{ kind: "pair", key: string, left: Line | null, right: Line | null }} PairRow
 * @typedef {{ kind: "thread", key: string, thread: Thread, isApart: boolean }} ThreadRow
 * @typedef {{ kind: "draft", key: string, draft: Draft }} DraftRow
 * @typedef {{ kind: "composer", key: string }} ComposerRow
 * @typedef {HunkRow | LineRow | PairRow | ThreadRow | DraftRow | ComposerRow} Row
 */

/** The side that a comment on a line belongs to. @param {Line} line */
export const sideOf = (line) => (line.type === "removed" ? "old" : "new");

/**
 * The number of a line on a side.
 * @param {Line} line
 * @param {string} side
 */
export const numberOn = (line, side) => (side === "old" ? line.old : line.new);

/**
 * Whether a line is among those of a span.
 * @param {Line | null} line
 * @param {Span | null} span
 */
export function isWithin(line, span) {
  if (!line || !span || (span.side === "old") !== (line.type === "removed")) return false;
  const number = numberOn(line, span.side);
  return number !== null && number >= span.line && number <= span.last_line;
}

/**
 * The rows of a diff.
 * @param {{ hunks: Hunk[], threads: Thread[], drafts: Draft[], composer: Span | null, isSplit: boolean }} given
 * @returns {Row[]}
 */
export function buildRows({ hunks, threads, drafts, composer, isSplit }) {
  /** @type {Map<string, Row[]>} */
  const below = new Map();
  /** @param {Span} span @param {Row} row */
  const put = (span, row) => {
    const place = `${span.side} ${span.last_line}`;
    below.set(place, [...(below.get(place) ?? []), row]);
  };
  for (const thread of threads) {
    put(thread, { kind: "thread", key: `thread ${thread.first.id}`, thread, isApart: false });
    for (const draft of drafts) {
      if (draft.reply_to === thread.first.id) put(thread, { kind: "draft", key: `draft ${draft.id}`, draft });
    }
  }
  for (const draft of drafts) {
    if (!draft.reply_to) put(draft, { kind: "draft", key: `draft ${draft.id}`, draft });
  }
  if (composer) put(composer, { kind: "composer", key: "composer" });

  /** @type {Row[]} */
  const rows = [];
  /** @param {Line | null} line @param {string} side */
  const take = (line, side) => {
    const number = line && numberOn(line, side);
    const place = `${side} ${number}`;
    const found = number === null ? undefined : below.get(place);
    if (!found) return;
    below.delete(place);
    rows.push(...found);
  };
  const apart = hunks.map(() => rows.length);
  hunks.forEach((hunk, number) => {
    apart[number] = rows.length;
    rows.push({ kind: "hunk", key: `hunk ${hunk.old_start} ${hunk.new_start} ${number}`, hunk });
    for (const row of isSplit ? pairs(hunk.lines) : hunk.lines.map(single)) {
      rows.push(row);
      if (row.kind === "line") {
        take(row.line, "old");
        take(row.line, "new");
      } else {
        take(row.left, "old");
        take(row.right, "new");
      }
    }
  });
  return insertApart(rows, apart, hunks, [...below.entries()]);
}

/**
 * Put what is about lines that are not shown between the hunks, where those lines would be.
 * @param {Row[]} rows
 * @param {number[]} starts the index of each hunk
 * @param {Hunk[]} hunks
 * @param {[string, Row[]][]} left
 */
function insertApart(rows, starts, hunks, left) {
  const places = left.map(([place, found]) => {
    const [side, number] = place.split(" ");
    const next = hunks.findIndex((hunk) => (side === "old" ? hunk.old_start : hunk.new_start) > Number(number));
    const marked = found.map((row) => (row.kind === "thread" ? { ...row, isApart: true } : row));
    return { at: next < 0 ? rows.length : starts[next], number: Number(number), rows: marked };
  });
  places.sort((one, other) => other.at - one.at || other.number - one.number);
  const all = [...rows];
  for (const place of places) all.splice(place.at, 0, ...place.rows);
  return all;
}

/** @param {Line} line @returns {LineRow} */
const single = (line) => ({ kind: "line", key: `${line.type} ${line.old} ${line.new}`, line });

/**
 * Lines side by side: what was removed beside what was added in its place.
 * @param {Line[]} lines
 * @returns {PairRow[]}
 */
function pairs(lines) {
  /** @type {PairRow[]} */
  const rows = [];
  /** @type {Line[]} */
  let removed = [];
  /** @type {Line[]} */
  let added = [];
  /** @param {Line | null} left @param {Line | null} right */
  const push = (left, right) => rows.push({ kind: "pair", key: `pair ${left?.old} ${right?.new}`, left, right });
  const flush = () => {
    for (let at = 0; at < Math.max(removed.length, added.length); at++) push(removed[at] ?? null, added[at] ?? null);
    removed = [];
    added = [];
  };
  for (const line of lines) {
    if (line.type === "removed") {
      if (added.length) flush();
      removed.push(line);
    } else if (line.type === "added") added.push(line);
    else {
      flush();
      push(line, line);
    }
  }
  flush();
  return rows;
}
