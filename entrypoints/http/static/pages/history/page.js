// History: the journal, newest first, with filters that stay in the address, and Undo for each change.

import { draw, h } from "../../parts/dom.js";
import { ago, exact, short } from "../../parts/format.js";
import { entriesAfter, newestEntries } from "../../parts/journal.js";
import { notify } from "../../parts/notices.js";
import { call } from "../../parts/rpc.js";
import { windowed } from "../../parts/windowed.js";

/** @import { Page, Place } from "../../page_table.js" */

const ROW = 32;
const PAGE = 500;
const QUIET = new Set(["updated_at", "version", "id", "created_at", "fence", "claim_stamp", "lease_until", "worktree_id"]);

/**
 * @param {Place} place
 * @returns {Page}
 */
export function open({ root, query, replace }) {
  /** @type {any[]} Newest first. */
  let entries = [];
  let isAll = false;
  /** What rows are called, as far as the entries tell. @type {Map<string, string>} */
  const names = new Map();
  const filters = { q: query.get("q") ?? "", who: query.get("who") ?? "", kind: query.get("kind") ?? "" };

  async function refresh() {
    if (!entries.length) {
      const [newest, agents] = await Promise.all([newestEntries(PAGE), call("agent.list", { limit: 1000 })]);
      for (const each of agents) names.set(each.id, each.name);
      entries = newest.reverse();
      isAll = !entries.length || entries[entries.length - 1].seq === 1;
    } else {
      const newer = await entriesAfter(entries[0].seq, PAGE);
      if (newer.length === PAGE) {
        entries = [];
        return refresh();
      }
      entries = [...newer.reverse(), ...entries];
    }
    show();
  }

  async function more() {
    const first = entries[entries.length - 1].seq;
    const older = (await entriesAfter(first - 1 - PAGE, PAGE)).filter((each) => each.seq < first);
    isAll = !older.length || older[0].seq === 1;
    entries = [...entries, ...older.reverse()];
    show();
  }

  /** @param {any} entry */
  async function undo(entry) {
    try {
      await call("undo", { tx: `#${entry.seq}` });
      notify(`#${entry.seq} was taken back.`);
    } catch (error) {
      notify(/** @type {Error} */ (error).message, { isRefusal: true });
    }
  }

  /** @param {any} entry */
  const who = (entry) => entry.agent ?? entry.person ?? "somebody";

  /** @param {any} entry */
  function what(entry) {
    const row = entry.after ?? entry.before ?? {};
    const said = row.question ?? row.content ?? row.body;
    const quoted = typeof said === "string" ? `“${cut(said)}”` : null;
    const name = row.name ?? row.title ?? row.email ?? row.branch ?? names.get(entry.key) ?? quoted ?? short(entry.key);
    const kind = entry.entity.replace(/ies$/, "ys").replace(/s$/, "").replaceAll("_", " ");
    if (entry.op === "add") return `added ${kind} ${name}`;
    if (entry.op === "remove") return `removed ${kind} ${(entry.before ?? {}).name ?? name}`;
    const changes = Object.keys(entry.after ?? {}).filter((each) => !QUIET.has(each));
    const told = changes.map((each) => `${each.replace(/_id$/, "").replaceAll("_", " ")} ${say(entry.after[each], names)}`).join(", ");
    return `${kind} ${names.get(entry.key) ?? short(entry.key)}: ${told || "changed"}`;
  }

  function find() {
    const words = filters.q.toLowerCase();
    return entries.filter(
      (each) =>
        (!filters.who || who(each) === filters.who) &&
        (!filters.kind || each.entity === filters.kind) &&
        (!words || `${what(each)} ${who(each)} ${each.key} ${each.note ?? ""}`.toLowerCase().includes(words)),
    );
  }

  /**
   * @param {"who" | "kind"} name
   * @param {string} label
   * @param {string[]} values
   */
  function choice(name, label, values) {
    return h(
      "select",
      { key: name, "aria-label": label, onchange: (/** @type {Event} */ event) => set(name, /** @type {HTMLSelectElement} */ (event.currentTarget).value) },
      ["", ...values].map((each) => h("option", { key: each, value: each, selected: each === filters[name] }, each ? each.replaceAll("_", " ") : label)),
    );
  }

  /**
   * @param {"q" | "who" | "kind"} name
   * @param {string} value
   */
  function set(name, value) {
    filters[name] = value;
    const asked = new URLSearchParams(Object.entries(filters).filter(([, each]) => each));
    replace(asked.size ? `/history?${asked}` : "/history");
    show();
  }

  /** @param {any} entry */
  function drawRow(entry) {
    const text = what(entry);
    return h(
      "li",
      { key: entry.seq, class: "row" },
      h("code", { class: "mute" }, `#${entry.seq}`),
      h("time", { datetime: entry.at, title: exact(entry.recorded_at ?? entry.at) }, ago(entry.recorded_at ?? entry.at)),
      h("span", { class: "mute" }, who(entry)),
      entry.entity === "tasks" && entry.op !== "remove" ? h("a", { href: `/task/${entry.key}`, title: text }, text) : h("span", { title: text }, text),
      h("button", { class: "quiet", "aria-label": `Undo change ${entry.seq}`, onclick: () => undo(entry) }, "Undo"),
    );
  }

  function show() {
    for (const each of entries) {
      const name = each.after?.name ?? each.before?.name;
      if (name && !names.has(each.key)) names.set(each.key, name);
    }
    const found = find();
    const people = [...new Set(entries.map(who))].sort();
    const kinds = [...new Set(entries.map((each) => each.entity))].sort();
    draw(root, [
      h(
        "div",
        { key: "filter", class: "filter" },
        h("h1", null, "History ", h("span", { class: "mute" }, found.length === entries.length ? `${entries.length}${isAll ? "" : " newest"}` : `${found.length} of ${entries.length}${isAll ? "" : " newest"}`)),
        h("input", { type: "search", value: filters.q, "aria-label": "Filter changes", placeholder: "Filter ( / )", oninput: (/** @type {Event} */ event) => set("q", /** @type {HTMLInputElement} */ (event.currentTarget).value) }),
        choice("who", "everybody", people),
        choice("kind", "everything", kinds),
      ),
      entries.length
        ? windowed({
            name: "history",
            label: "Changes",
            items: found,
            rowHeight: ROW,
            row: drawRow,
            redraw: show,
            foot: !isAll && h("p", { class: "more" }, h("button", { class: "quiet", onclick: more }, "earlier changes")),
          })
        : h("p", { key: "none", class: "calm" }, "Nothing has happened yet. ", h("code", null, "herdbook task add 'write the parser'")),
    ]);
  }

  return {
    refresh,
    tick: show,
    keys: { "/": () => /** @type {HTMLElement | null} */ (root.querySelector("input"))?.focus() },
    help: [["/", "filter"]],
  };
}

/**
 * A value in words; an id by the name of its row, if that is known.
 * @param {any} value
 * @param {Map<string, string>} names
 * @returns {string}
 */
function say(value, names) {
  if (value === null) return "none";
  if (/^[a-z]+_[0-9a-f]{20}$/.test(value)) return names.get(value) ?? short(value);
  if (Array.isArray(value)) return value.map((each) => say(each?.question ?? each, names)).join("; ") || "none";
  if (typeof value === "object") return cut(JSON.stringify(value));
  const text = String(value);
  return /^[a-z_]+$/.test(text) ? text.replaceAll("_", " ") : cut(text);
}

/** @param {string} text */
const cut = (text) => (text.length > 60 ? `${text.slice(0, 60)}…` : text);
