// The scale of a time axis: where a moment is drawn. Times in which nothing happens can be narrow.

/**
 * @typedef {{ since: number, until: number }} Times in milliseconds
 * @typedef {{ since: number, until: number, left: number, right: number, isGap: boolean }} Piece
 * @typedef {{ width: number, pieces: Piece[], x: (moment: number) => number, moment: (x: number) => number }} Scale
 */

/** How wide a time is drawn in which nothing happens. */
export const GAP = 20;
const STEPS = [1, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000].map((each) => each * 1000);

/**
 * @param {Times} times the whole axis
 * @param {Times[]} gaps what is drawn narrow, in order
 * @param {number} width
 * @returns {Scale}
 */
export function makeScale({ since, until }, gaps, width) {
  const inside = gaps.filter((each) => each.until > since && each.since < until);
  const share = Math.min(GAP, (width * 0.4) / Math.max(1, inside.length));
  const idle = inside.reduce((sum, each) => sum + Math.min(each.until, until) - Math.max(each.since, since), 0);
  const isAllIdle = until - since - idle < 1;
  const perMs = (width - (isAllIdle ? 0 : share * inside.length)) / Math.max(1, until - since - (isAllIdle ? 0 : idle));
  /** @type {Piece[]} */
  const pieces = [];
  let left = 0;
  let from = since;
  /**
   * @param {number} to
   * @param {boolean} isGap
   */
  const add = (to, isGap) => {
    const right = left + (isGap ? share : (to - from) * perMs);
    pieces.push({ since: from, until: to, left, right, isGap });
    left = right;
    from = to;
  };
  for (const gap of isAllIdle ? [] : inside) {
    if (gap.since > from) add(gap.since, false);
    add(Math.min(gap.until, until), true);
  }
  if (from < until || !pieces.length) add(Math.max(until, from + 1), false);
  return {
    width,
    pieces,
    x(moment) {
      const piece = pieces.find((each) => moment < each.until) ?? pieces[pieces.length - 1];
      return piece.left + ((moment - piece.since) / (piece.until - piece.since)) * (piece.right - piece.left);
    },
    moment(x) {
      const piece = pieces.find((each) => x < each.right) ?? pieces[pieces.length - 1];
      return piece.since + ((x - piece.left) / (piece.right - piece.left || 1)) * (piece.until - piece.since);
    },
  };
}

/**
 * Round times for an axis, at least so many pixels apart, with a text each.
 * @param {Scale} scale
 * @param {number} apart
 * @returns {{ x: number, moment: number, text: string }[]}
 */
export function findTicks(scale, apart) {
  const busy = scale.pieces.filter((each) => !each.isGap);
  const pixels = busy.reduce((sum, each) => sum + each.right - each.left, 0);
  const length = busy.reduce((sum, each) => sum + each.until - each.since, 0);
  const least = (length / Math.max(1, pixels)) * apart;
  const step = STEPS.find((each) => each >= least) ?? Math.ceil(least / STEPS[19]) * STEPS[19];
  const zone = new Date(scale.pieces[0].since).getTimezoneOffset() * 60000;
  const found = [];
  let last = -Infinity;
  for (const piece of busy) {
    for (let at = Math.ceil((piece.since - zone) / step) * step + zone; at < piece.until; at += step) {
      const x = scale.x(at);
      if (x - last < apart || x > scale.width - apart * (step < 60000 ? 0.75 : 0.5)) continue;
      found.push({ x, moment: at, text: tickText(at, step) });
      last = x;
    }
  }
  return found;
}

/**
 * @param {number} moment
 * @param {number} step
 */
function tickText(moment, step) {
  const date = new Date(moment);
  const isMidnight = date.getHours() === 0 && date.getMinutes() === 0 && date.getSeconds() === 0;
  if (step >= 86400000 || (isMidnight && step >= 60000)) return date.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  return date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: step < 60000 ? "2-digit" : undefined });
}
