// The changes of all served journals, over one connection per browser: the tab that holds the lock
// reads the feed and tells the others. Whoever takes over goes on from the last position that any
// of them has seen, so nothing is missed when a tab closes or the server restarts.

import { knownActivities } from "./activity.js";

/**
 * @import { Activity } from "./activity.js"
 * @typedef {object} News
 * @property {"changed" | "state" | "pulse"} kind
 * @property {string} position
 * @property {boolean} isConnected
 * @property {string | null} [space] the space that changed, if it is one
 * @property {Activity[]} [activities] what agents do, as their hooks tell it
 */

const NAME = "herdbook.feed";
const RETRY = 1000;

let leads = false;

/** Whether this window reads the feed for all others. */
export const isLeading = () => leads;

/**
 * Follow the changes until the page is closed.
 * @param {(news: News) => void} tell
 */
export function follow(tell) {
  const channel = new BroadcastChannel(NAME);
  let position = "";
  let isConnected = false;
  /** @param {News} news */
  const take = (news) => {
    if (news.position) position = news.position;
    isConnected = news.isConnected;
    tell(news);
  };
  channel.onmessage = (event) => {
    if (event.data === "who") {
      if (leads) channel.postMessage({ kind: "pulse", position, isConnected, activities: knownActivities() });
    } else take(event.data);
  };
  channel.postMessage("who");
  navigator.locks.request(NAME, () => {
    leads = true;
    return lead();
  });

  /** @param {News} news */
  function publish(news) {
    channel.postMessage(news);
    take(news);
  }

  /** Read the feed; the promise never ends, so the lock is held as long as this page lives. */
  function lead() {
    return new Promise(() => connect());
  }

  function connect() {
    const since = position ? `?since=${encodeURIComponent(position)}` : "";
    const source = new EventSource(`/feed${since}`);
    /** @param {MessageEvent} event */
    const changed = (event) => {
      const space = JSON.parse(event.data).space ?? null;
      publish({ kind: "changed", position: event.lastEventId || position, isConnected: true, space });
    };
    source.addEventListener("spaces", (event) => {
      const isBack = position !== "";
      const id = /** @type {MessageEvent} */ (event).lastEventId;
      // After a pause, what is shown may be old even if no entry is new: leases have gone on.
      publish({ kind: isBack ? "changed" : "state", position: id, isConnected: true });
    });
    source.addEventListener("journal", changed);
    source.addEventListener("reset", changed);
    source.addEventListener("pulse", (event) => {
      const seen = Date.now();
      const activities = JSON.parse(/** @type {MessageEvent} */ (event).data).map((/** @type {any} */ pulse) => ({ pulse, seen }));
      publish({ kind: "pulse", position, isConnected: true, activities });
    });
    source.onerror = () => {
      publish({ kind: "state", position, isConnected: false });
      if (source.readyState !== EventSource.CLOSED) return;
      // Refused, not only interrupted: the browser does not try again by itself.
      setTimeout(connect, RETRY);
    };
  }
}
