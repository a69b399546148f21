// What keys do: `g` and a letter open a page, the rest belongs to the page that is shown.

/** @typedef {{ pages: Record<string, () => void>, page: Record<string, () => void>, moment: Record<string, () => void>, palette: () => void, help: () => void }} Bindings */

const TOGETHER = 1500;
/** The keys that go on while they are held down: they move, and do nothing else. */
const MOVES = new Set(["j", "k", "h", "l", "J", "K", "ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "[", "]", "+", "-"]);
let since = 0;

/** @param {KeyboardEvent} event */
function isWriting(event) {
  const target = /** @type {HTMLElement} */ (event.target);
  return target.closest("input:not([type=range]), textarea, select, dialog") !== null;
}

/**
 * @param {KeyboardEvent} event
 * @param {Bindings} bindings
 */
export function handleKey(event, bindings) {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    if (!event.repeat) bindings.palette();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || isWriting(event)) return;
  const isHeld = event.repeat && !MOVES.has(event.key);
  if (isHeld && event.key === "g") return; // one `g` opens no page
  const isSecond = Date.now() - since < TOGETHER;
  since = 0;
  let found;
  if (isSecond && event.key) found = bindings.pages[event.key];
  else if (event.key === "g") since = Date.now();
  else if (event.key === "?") found = bindings.help;
  else found = bindings.page[event.key] ?? bindings.moment[event.key];
  // A link or a button that has the focus is what these keys are for.
  if ([" ", "Enter"].includes(event.key) && /** @type {HTMLElement} */ (event.target).closest("a, button, summary")) return;
  if (!found) return;
  event.preventDefault();
  if (!isHeld) found();
}
