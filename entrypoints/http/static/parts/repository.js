// Which repository this tab shows. Where several are served it stands in the address, as `repo`: links
// and the history keep it. The tab keeps it for addresses without one, and the browser the one that was
// chosen last, for new tabs.

/** @typedef {{ key: string, space: string, folder: string }} Repository `key` is its name in addresses */

const NAME = "herdbook.repository";
/** @type {Repository[]} */
let served = [];
/** @type {Repository | null} */
let shown = null;

/** The repositories that are served, the first one first. */
export const servedRepositories = () => served;

/** The repository that is shown; null until the server has said which there are. */
export const shownRepository = () => shown;

/**
 * Note that repositories are served. One that is not told of any more stays: its calls are refused.
 * @param {Repository[]} found
 */
export function addServed(found) {
  served = [...served, ...found.filter((each) => served.every((other) => other.key !== each.key))];
}

/** @param {string | null} key */
const find = (key) => served.find((each) => each.key === key);

/**
 * Show the repository that an address names; without a name that of this tab, else the one that was
 * chosen last, else the first. Returns whether there is the named one.
 * @param {string | null} key
 */
export function takeRepository(key) {
  const named = key === null ? null : find(key);
  shown = named ?? shown ?? find(sessionStorage.getItem(NAME)) ?? find(localStorage.getItem(NAME)) ?? served[0] ?? null;
  if (shown) sessionStorage.setItem(NAME, shown.key);
  return named !== undefined;
}

/**
 * Let new tabs show a repository.
 * @param {string} key
 */
export const keepRepository = (key) => localStorage.setItem(NAME, key);

/**
 * A path of a page, of the repository that is shown unless it names one itself.
 * @param {string} path
 */
export function withRepository(path) {
  if (!shown || served.length < 2 || !path.startsWith("/")) return path;
  const [place, query] = path.split("?");
  const asked = new URLSearchParams(query);
  if (!asked.has("repo")) asked.set("repo", shown.key);
  return `${place}?${asked}`;
}
