// Times, numbers and names as people read them. Durations end at the moment that is shown.

import { clock } from "./moment.js";

/**
 * A duration in its largest unit: `40s`, `4m`, `3h`, `2d`.
 * @param {number} seconds
 */
export function duration(seconds) {
  const size = Math.abs(seconds);
  if (size < 60) return `${Math.round(size)}s`;
  if (size < 3600) return `${Math.floor(size / 60)}m`;
  if (size < 86400) return `${Math.floor(size / 3600)}h`;
  return `${Math.floor(size / 86400)}d`;
}

/**
 * How long ago something was.
 * @param {string} at
 */
export const ago = (at) => duration((clock() - Date.parse(at)) / 1000);

/**
 * The exact time, for titles.
 * @param {string} at
 */
export const exact = (at) => new Date(at).toLocaleString();

/**
 * The time of a day, with the day if it is not today.
 * @param {string} at
 * @param {boolean} [seconds]
 */
export function clockTime(at, seconds = false) {
  const moment = new Date(at);
  const time = moment.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: seconds ? "2-digit" : undefined });
  if (moment.toDateString() === new Date().toDateString()) return time;
  const isThisYear = moment.getFullYear() === new Date().getFullYear();
  const day = moment.toLocaleDateString("en-GB", { day: "numeric", month: "short", year: isThisYear ? undefined : "numeric" });
  return `${day} ${time}`;
}

/**
 * A number with a noun: `1 task`, `2 tasks`.
 * @param {number} count
 * @param {string} noun
 */
export const many = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

/**
 * The first characters of an id: enough to name a row.
 * @param {string} id
 */
export const short = (id) => id.replace(/^[a-z]+_/, "").slice(0, 6);

/**
 * What is left of a lease, in words; a count of seconds only below two minutes.
 * @param {string} until
 */
export function leaseLeft(until) {
  const left = (Date.parse(until) - clock()) / 1000;
  if (left < 0) return `lease over for ${duration(left)}`;
  return `${left < 120 ? `${Math.round(left)}s` : duration(left)} left`;
}

/** The mark of each state: never colour alone. @type {Record<string, string>} */
export const MARKS = {
  held: "◐",
  running: "◐",
  ready: "○",
  idle: "○",
  waiting: "◌",
  blocked: "■",
  crashed: "■",
  halted: "■",
  review: "◇",
  completed: "●",
  stopped: "●",
  waiting_for_input: "!",
};

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

/**
 * A number of bytes in the unit that suits it: `312 B`, `1.5 MiB`.
 * @param {number} bytes
 */
export function sizeText(bytes) {
  let size = bytes;
  let unit = 0;
  while (size >= 1024 && unit < UNITS.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${unit ? size.toFixed(1) : size} ${UNITS[unit]}`;
}

/**
 * A word as a shell takes it, so that a command that is copied means what it shows.
 * @param {string} word
 */
export const shellWord = (word) => (/^[\w.-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
