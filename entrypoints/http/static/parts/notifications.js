// Desktop notifications for what newly waits for the person. They are off until somebody presses the
// button, which is also when the browser asks. One window of a browser shows them: the one that reads
// the feed. They say who or what waits, and never what was said, which may hold anything.

import { isLeading } from "./feed.js";
import { notify } from "./notices.js";
import { chosenFolder } from "./rpc.js";

/** @typedef {{ subject: string, since: string, title: string, cut?: boolean }} Waiting */

const NAME = "herdbook.notifications";
const ICON = "/static/icon-waiting.svg";
/** At once, so many are shown one by one; more of them as one. */
const MOST = 3;
/** What was seen waiting, by folder; what waits when a folder is first read is not new. @type {Map<string, Set<string>>} */
const seen = new Map();

/** Whether this browser has them at all. */
export const hasNotifications = () => "Notification" in window;

/** Whether the person wants them, and the browser still allows it. */
export const isNotifying = () => hasNotifications() && localStorage.getItem(NAME) === "on" && Notification.permission === "granted";

/** Switch them on, for which the browser may ask the person, or off. */
export async function toggleNotifications() {
  if (isNotifying()) {
    localStorage.removeItem(NAME);
    return;
  }
  if ((await Notification.requestPermission()) === "granted") localStorage.setItem(NAME, "on");
  else notify("The browser does not let this page show notifications; its settings say why.", { isRefusal: true });
}

/**
 * Note what waits now, and show what is new.
 * @param {Waiting[]} entries
 * @param {() => void} open what a click on a notification does
 */
export function noteWaiting(entries, open) {
  const folder = chosenFolder() ?? "";
  const before = seen.get(folder);
  const names = new Map(entries.map((each) => [`${each.subject} ${each.since}`, each]));
  seen.set(folder, new Set(names.keys()));
  if (!before || !isLeading() || !isNotifying()) return;
  const fresh = [...names].filter(([name]) => !before.has(name)).map(([, each]) => each);
  if (fresh.length > MOST) return show(`${fresh.length} things wait for you`, folder, open);
  for (const each of fresh) show(each.title, each.subject, open);
}

/**
 * @param {string} title
 * @param {string} tag one notification takes the place of an earlier one with the same
 * @param {() => void} open
 */
function show(title, tag, open) {
  const shown = new Notification(title, { body: "It waits for you.", tag: `herdbook ${tag}`, icon: ICON });
  shown.onclick = () => {
    window.focus();
    open();
    shown.close();
  };
}

/** Whether more waits than was told. @param {Waiting[]} entries */
export const isCut = (entries) => entries.some((each) => each.cut);

/** How much waits, in words: `200+` if more waits than was told. @param {Waiting[]} entries */
export const countText = (entries) => `${entries.length}${isCut(entries) ? "+" : ""}`;

/**
 * The icon of the tab: how much waits.
 * @param {number} count
 */
export function iconOf(count) {
  if (!count) return "/static/icon.svg";
  return count < 10 ? `/static/icons/waiting-${count}.svg` : ICON;
}
