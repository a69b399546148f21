// The changes of all served journals, over one connection per browser: the tab that holds the lock
// reads the feed and tells the others. Whoever takes over goes on from the last position that any
// of them has seen, so nothing is missed when a tab closes or the server restarts.

import { knownActivities } from "./activity.js";

/**
 * @import { Activity } from "./activity.js"
 * @import { Repository } from "./repository.js"
 * @typedef {object} News
 * @property {"changed" | "state" | "pulse" | "refused" | "trouble"} kind `refused`: the server does not give the feed
 * @property {string} position
 * @property {boolean} isConnected
 * @property {string | null} [space] the space that changed, if it is one
 * @property {Activity[]} [activities] what agents do, as their hooks tell it
 * @property {string} [trouble] why a journal cannot be read
 * @property {Repository[]} [repositories] those whose changes are told from now on
 */

const NAME = "herdbook.feed";
const RETRY = 1000;

let leads = false;

/** Whether this window reads the feed for all others. */
export const isLeading = () => leads;

/**
 * Follow the changes until the page is closed. Returns what asks for those of a space, by its key: the
 * feed has the spaces that were served when it was opened.
 * @param {(news: News) => void} tell
 * @returns {(key: string) => void}
 */
export function follow(tell) {
  const channel = new BroadcastChannel(NAME);
  let position = "";
  let isConnected = false;
  /** @type {EventSource | null} */
  let source = null;
  /** The spaces of this connection, once it has told them. @type {Set<string> | null} */
  let covered = null;
  /** The spaces that were asked for since. @type {Set<string>} */
  const asked = new Set();
  /** @param {News} news */
  const take = (news) => {
    if (news.position) position = news.position;
    isConnected = news.isConnected;
    tell(news);
  };
  channel.onmessage = (event) => {
    if (event.data === "who") {
      if (leads) channel.postMessage({ kind: "pulse", position, isConnected, activities: knownActivities() });
    } else if (event.data.ask) ask(event.data.ask);
    else take(event.data);
  };
  channel.postMessage("who");
  navigator.locks.request(NAME, () => {
    leads = true;
    return lead();
  });

  /** @param {string} key */
  function ask(key) {
    if (!leads) return;
    asked.add(key);
    if (covered) connectForMore(covered);
  }

  /**
   * Connect again if a space was asked for that this connection does not have.
   * @param {Set<string>} known
   */
  function connectForMore(known) {
    const isMissing = [...asked].some((each) => !known.has(each));
    asked.clear();
    if (isMissing) connect();
  }

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
    source?.close();
    covered = null;
    const own = (source = new EventSource(`/feed${since}`));
    /** @param {MessageEvent} event */
    const changed = (event) => {
      const space = JSON.parse(event.data).space ?? null;
      publish({ kind: "changed", position: event.lastEventId || position, isConnected: true, space });
    };
    own.addEventListener("spaces", (event) => {
      const { data, lastEventId } = /** @type {MessageEvent} */ (event);
      /** @type {any[]} */
      const spaces = JSON.parse(data);
      covered = new Set(spaces.map((each) => each.key));
      const repositories = spaces.filter((each) => each.area === "work");
      // What is shown was read before the feed began. After a pause, it may be old even if no entry is
      // new: leases have gone on.
      publish({ kind: "changed", position: lastEventId, isConnected: true, repositories });
      connectForMore(covered);
    });
    own.addEventListener("journal", changed);
    own.addEventListener("reset", changed);
    own.addEventListener("trouble", (event) => {
      const trouble = JSON.parse(/** @type {MessageEvent} */ (event).data).message;
      publish({ kind: "trouble", position, isConnected: true, trouble });
    });
    own.addEventListener("pulse", (event) => {
      const seen = Date.now();
      const activities = JSON.parse(/** @type {MessageEvent} */ (event).data).map((/** @type {any} */ pulse) => ({ pulse, seen }));
      publish({ kind: "pulse", position, isConnected: true, activities });
    });
    own.onerror = () => {
      // Refused, not only interrupted: the browser does not try again by itself.
      const isRefused = own.readyState === EventSource.CLOSED;
      publish({ kind: isRefused ? "refused" : "state", position, isConnected: false });
      if (!isRefused) return;
      setTimeout(connect, RETRY);
    };
  }

  return (key) => {
    if (leads) ask(key);
    else channel.postMessage({ ask: key });
  };
}
