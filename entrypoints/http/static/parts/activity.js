// What agents do at this moment, as their hooks tell it: the last pulse of each session and of each
// agent. Pulses come with the feed, so nothing is asked for; the clock is the browser's own, because
// a pulse is told within a second of what it is about.

import { duration } from "./format.js";
import { isPast } from "./moment.js";

/**
 * @typedef {{ kind: string, agent: string | null, session_id: string | null, tool: string | null, space: string | null }} Pulse
 * @typedef {{ pulse: Pulse, seen: number }} Activity
 */

const SECONDS = 300;
const MOST = 500;
/** What each kind of pulse is called; a tool has its own name. @type {Record<string, string>} */
const WORDS = {
  started: "began a session",
  prompted: "was told what to do",
  command: "ran a command",
  committed: "committed",
  waiting: "ended its turn",
  ended: "ended its session",
};
/** The newest of each agent and session, the oldest first. @type {Map<string, Activity>} */
const newest = new Map();

/** @param {Pulse} pulse */
const names = ({ agent, session_id, space }) =>
  [session_id && `session ${session_id}`, agent && space && `agent ${space} ${agent}`].filter((each) => typeof each === "string");

/**
 * Note what agents did.
 * @param {Activity[]} activities
 */
export function noteActivities(activities) {
  for (const each of activities) {
    for (const name of names(each.pulse)) {
      newest.delete(name); // so that it is put at the end
      newest.set(name, each);
    }
  }
  for (const name of [...newest.keys()].slice(0, Math.max(0, newest.size - MOST))) newest.delete(name);
}

/**
 * What is known, for a window that was opened later.
 * @returns {Activity[]}
 */
export const knownActivities = () => [...new Set(newest.values())].filter(isRecent);

/** @param {Activity} activity */
const isRecent = ({ seen }) => Date.now() - seen < SECONDS * 1000;

/**
 * What an agent does at this moment: "Bash, 3s ago"; null if its hooks have told nothing lately,
 * and at an earlier moment, of which it is not known.
 * @param {string} space
 * @param {{ name: string | null, session: string | null }} agent
 * @returns {string | null}
 */
export function activityText(space, { name, session }) {
  const found = [`session ${session}`, `agent ${space} ${name}`].map((each) => newest.get(each));
  const last = found.reduce((a, b) => (!a || (b && b.seen > a.seen) ? b : a), undefined);
  if (isPast() || !last || !isRecent(last)) return null;
  const { kind, tool } = last.pulse;
  const past = duration((Date.now() - last.seen) / 1000);
  if (kind === "tool_started") return `${tool ?? "a tool"} for ${past}`;
  if (kind === "tool_failed") return `${tool ?? "a tool"} failed, ${past} ago`;
  return `${WORDS[kind] ?? tool ?? "a tool"}, ${past} ago`;
}
