// Health: what is wrong with the installation and what to do, then the stores and the server in
// numbers, then what is well. It is asked when the page is opened and by a button, not at changes.

import { draw, h, withCode } from "../../parts/dom.js";
import { ago, duration, exact, many, sizeText } from "../../parts/format.js";
import { call } from "../../parts/rpc.js";
import { createTurns } from "../../parts/turns.js";

/** @import { Page, Place } from "../../page_table.js" */
/** @typedef {{ check: string, health: "ok" | "warning" | "problem", says: string, advice: string | null }} Result */

const WORDS = /** @type {Record<string, string>} */ ({ problem: "does not work", warning: "should be looked at" });
const MARK = /** @type {Record<string, string>} */ ({ problem: "■", warning: "!" });

/**
 * @param {Place} place
 * @returns {Page}
 */
export function open({ root }) {
  /** @type {any} */
  let answer = null;
  let checkedAt = "";
  let isBusy = false;
  let refusal = "";

  const begin = createTurns();

  async function refresh() {
    const isLast = begin();
    const found = await call("doctor");
    if (!isLast()) return;
    answer = found;
    checkedAt = new Date().toISOString();
    show();
  }

  async function checkAgain() {
    isBusy = true;
    show();
    try {
      await refresh();
      refusal = "";
    } catch (error) {
      refusal = /** @type {Error} */ (error).message;
    }
    isBusy = false;
    show();
  }

  /** @param {string} health */
  const results = (health) => /** @type {Result[]} */ (answer.checks).filter((each) => each.health === health);

  /**
   * @param {Result} result
   * @param {number} at
   */
  function drawTrouble(result, at) {
    return h(
      "li",
      { key: `${result.check} ${at}`, class: `finding ${result.health}` },
      h("div", { class: "title" }, h("span", { class: "mark", "aria-hidden": "true" }, MARK[result.health]), h("h2", null, result.check), h("span", { class: "mute" }, WORDS[result.health])),
      h("p", { class: "prose" }, withCode(result.says)),
      result.advice && h("p", { class: "advice prose" }, h("span", { class: "mute" }, "What to do: "), withCode(result.advice)),
    );
  }

  /** @param {any} store */
  function drawStore(store) {
    const journal = answer.journals.find((/** @type {any} */ each) => each.area === store.area);
    const backup = answer.backups?.spaces.find((/** @type {any} */ each) => each.space === journal?.space);
    const facts = [
      ["engine", store.engine],
      ["size", store.bytes === null ? null : sizeText(store.bytes)],
      ["schema", store.schema_version],
      ["journal", journal && journal.entries > 0 && `#${store.head}, ${journal.entries.toLocaleString("en")} kept, about ${sizeText(journal.bytes)}`],
      ["growth", journal && journal.entries > 0 && `${journal.entries_in_a_week.toLocaleString("en")} in 7 days`],
      ["cursors", journal?.oldest_cursor && (store.cursor_behind ? `${journal.oldest_cursor}, ${store.cursor_behind} behind` : "none is behind")],
      ["last backup", backup ? h("time", { datetime: backup.last_at, title: exact(backup.last_at) }, `${ago(backup.last_at)} ago, up to #${backup.seq}`) : store.exists && "none"],
    ].filter(([, value]) => value);
    return h(
      "li",
      { key: store.area, class: "store" },
      h("h3", null, store.area),
      store.trouble ? h("p", { class: "mute" }, "cannot be read; see above") : !store.exists ? h("p", { class: "mute" }, `${store.engine}: no store yet; the first write makes it`) : h("dl", { class: "details" }, facts.map(([name, value]) => [h("dt", { key: `${name} name` }, name), h("dd", { key: name }, value)])),
    );
  }

  function drawServer() {
    const { server } = answer;
    if (!server) return null;
    const facts = [
      ["runs for", duration(server.seconds)],
      ["requests", `${server.requests.toLocaleString("en")}, ${server.failed_requests} failed`],
      ["calls", `${server.refused_calls} refused, ${server.defects} ended by a fault, ${server.waiting_calls} wait`],
      ["feed", `${many(server.feed_readers, "connection")}, ${many(server.feed_behind, "change")} behind`],
      ["memory", `${sizeText(server.memory)}, ${many(server.open_files, "open file")}`],
    ];
    return h("li", { key: "server", class: "store" }, h("h3", null, "server"), h("dl", { class: "details" }, facts.map(([name, value]) => [h("dt", { key: `${name} name` }, name), h("dd", { key: name }, value)])));
  }

  function drawSpool() {
    const { waiting, aside } = answer;
    const facts = [
      ["events", `${waiting.events} wait, ${sizeText(waiting.bytes)}`],
      ["since", waiting.since && `${ago(new Date(waiting.since * 1000).toISOString())} ago`],
      ["set aside", many(aside.length, "line")],
    ].filter(([, value]) => value);
    return h("li", { key: "spool", class: "store" }, h("h3", null, "spool of the hooks"), h("dl", { class: "details" }, facts.map(([name, value]) => [h("dt", { key: `${name} name` }, name), h("dd", { key: name }, value)])));
  }

  function summary() {
    const parts = [
      [results("problem").length, "problem"],
      [results("warning").length, "warning"],
    ];
    const told = parts.filter(([count]) => count).map(([count, noun]) => many(Number(count), String(noun)));
    return told.join(", ") || "All is well";
  }

  function show() {
    if (!answer) return;
    const troubles = [...results("problem"), ...results("warning")];
    const well = results("ok");
    const names = [...new Set(well.map((each) => each.check))];
    draw(root, [
      h(
        "div",
        { key: "head", class: "filter" },
        h("h1", null, summary()),
        h("button", { onclick: checkAgain, disabled: isBusy }, isBusy ? "Checking…" : "Check again"),
        h("time", { datetime: checkedAt, title: exact(checkedAt) }, `checked ${ago(checkedAt)} ago`),
      ),
      refusal && h("p", { key: "refusal", class: "trouble", role: "alert" }, refusal),
      troubles.length > 0 && h("ul", { key: "troubles", class: "findings", "aria-label": "Problems and warnings" }, troubles.map(drawTrouble)),
      h("section", { key: "stores", "aria-labelledby": "stores-title" }, h("h2", { id: "stores-title" }, "Stores, spool and server"), h("ul", { class: "stores" }, answer.stores.map(drawStore), drawSpool(), drawServer())),
      h(
        "details",
        { key: "well" },
        h("summary", null, `${well.length} checks are well`),
        h(
          "dl",
          { class: "details well" },
          names.map((name) => [
            h("dt", { key: `${name} name` }, name),
            h(
              "dd",
              { key: name },
              well.filter((each) => each.check === name).map((each, at) => h("p", { key: at }, withCode(each.says), each.advice && h("span", { class: "mute" }, " ", withCode(each.advice)))),
            ),
          ]),
        ),
      ),
    ]);
  }

  return { refresh, tick: show, area: "none", keys: { c: checkAgain }, help: [["c", "check again"]] };
}
