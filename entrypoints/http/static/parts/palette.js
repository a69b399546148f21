// Ctrl-K: every operation of the server with its help, a form for its parameters, and its answer or
// refusal in the server's own words.

import { draw, h } from "./dom.js";
import { isPast } from "./moment.js";
import { call, readMethods } from "./rpc.js";

/** @import { Method, Param } from "./rpc.js" */

const MOST = 50;
const LONGEST = 20_000;

/**
 * A dialog that is gone when it is closed.
 * @param {string} label
 */
function openDialog(label) {
  const dialog = document.createElement("dialog");
  dialog.setAttribute("aria-label", label);
  dialog.onclose = () => dialog.remove();
  dialog.onclick = (event) => {
    if (event.target === dialog) dialog.close();
  };
  document.querySelector("dialog")?.remove();
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** @param {[string, string][]} keys */
export function openHelp(keys) {
  const dialog = openDialog("Keys");
  draw(dialog, [
    h("h2", null, "Keys"),
    h("dl", { class: "keys" }, keys.map(([key, text]) => h("div", { key }, h("dt", null, h("kbd", null, key)), h("dd", null, text)))),
    h("button", { onclick: () => dialog.close() }, "Close"),
  ]);
  dialog.querySelector("button")?.focus();
}

/** @typedef {{ name: string, summary: string, command: string }} Hint a command that is typed in a terminal */

/**
 * @param {(path: string) => void} go
 * @param {Hint[]} [hints]
 */
export async function openPalette(go, hints = []) {
  const dialog = openDialog("Commands");
  /** @type {(Method | Hint)[] | null} */
  let methods = null;
  let words = "";
  let at = 0;
  const show = () => {
    const asked = words.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = (methods ?? []).filter((each) => {
      const text = `${each.name.replace(/[.-]/g, " ")} ${each.name} ${each.summary}`.toLowerCase();
      return asked.every((word) => text.includes(word));
    });
    // Those whose name begins with the words stand first.
    const isNamed = (/** @type {Method | Hint} */ each) => each.name.replace(/[.-]/g, " ").startsWith(asked.join(" "));
    const all = [...matches.filter(isNamed), ...matches.filter((each) => !isNamed(each))];
    const found = all.slice(0, MOST);
    at = Math.max(0, Math.min(at, found.length - 1));
    draw(dialog, [
      h("input", {
        key: "words",
        value: words,
        type: "search",
        role: "combobox",
        "aria-label": "Find a command",
        "aria-expanded": "true",
        "aria-controls": "commands",
        "aria-activedescendant": found.length ? `command-${at}` : null,
        placeholder: "Find a command, or a task by its id or name",
        autofocus: true,
        oninput: (/** @type {Event} */ event) => {
          words = /** @type {HTMLInputElement} */ (event.currentTarget).value;
          at = 0;
          show();
        },
        onkeydown: (/** @type {KeyboardEvent} */ event) => {
          const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
          if (!step && event.key !== "Enter") return;
          event.preventDefault(); // else Enter would press what has the focus next
          if (!methods) return;
          if (event.key === "Enter") {
            if (found.length) choose(found[at]);
            else if (words) {
              dialog.close();
              go(`/task/${encodeURIComponent(words)}`);
            }
            return;
          }
          at += step ?? 0;
          show();
          dialog.querySelector(`#command-${at}`)?.scrollIntoView({ block: "nearest" });
        },
      }),
      found.length
        ? h(
            "ul",
            { key: "found", id: "commands", role: "listbox", "aria-label": "Commands", class: "commands" },
            found.map((each, number) =>
              h(
                "li",
                {
                  key: each.name,
                  id: `command-${number}`,
                  role: "option",
                  "aria-selected": number === at ? "true" : "false",
                  onclick: () => choose(each),
                },
                h("code", null, each.name.replaceAll(".", " ")),
                h("span", { class: "mute" }, each.summary),
              ),
            ),
          )
        : h("p", { key: "none", id: "commands", class: "mute" }, methods ? `No such command; Enter looks for the task “${words}”.` : "Reading the commands…"),
      all.length > MOST && h("p", { key: "more", class: "mute" }, `${MOST} of ${all.length}; more words show fewer.`),
    ]);
  };
  /** @param {Method | Hint} item */
  const choose = (item) => ("command" in item ? showHint(dialog, item, list) : showForm(dialog, item, list));
  const list = () => {
    show();
    /** @type {HTMLElement | null} */ (dialog.querySelector("input"))?.focus();
  };
  list();
  const all = await readMethods();
  // At an earlier moment there is only what can be read of it.
  methods = [...hints, ...(isPast() ? all.filter((each) => each["x-past"]) : all)];
  show();
}

/**
 * What to type in a terminal.
 * @param {HTMLDialogElement} dialog
 * @param {Hint} hint
 * @param {() => void} back
 */
function showHint(dialog, { name, summary, command }, back) {
  draw(dialog, []);
  draw(dialog, [
    h("h2", { key: "title" }, name),
    h("p", { key: "summary", class: "mute" }, summary),
    h("pre", { key: "command", class: "answer", tabindex: "0", role: "status" }, command),
    h(
      "div",
      { key: "buttons", class: "buttons" },
      h("button", { class: "strong", onclick: () => navigator.clipboard.writeText(command).then(() => dialog.close()) }, "Copy"),
      h("button", { onclick: back }, "Back"),
    ),
  ]);
  /** @type {HTMLElement | null} */ (dialog.querySelector("button"))?.focus();
}

/**
 * The form of one command.
 * @param {HTMLDialogElement} dialog
 * @param {Method} method
 * @param {() => void} back
 */
function showForm(dialog, method, back) {
  const offered = method.params.filter((each) => !(isPast() && each.name === "at"));
  const wanted = offered.sort((a, b) => Number(b.required ?? false) - Number(a.required ?? false));
  /** @type {Record<string, any>} */
  const given = {};
  let answer = "";
  let isRefusal = false;
  let isRunning = false;
  let isLeft = false;

  const run = async () => {
    if (isRunning) return;
    isRunning = true;
    try {
      const result = await call(method.name, values(wanted, given));
      answer = result === null ? "Done." : JSON.stringify(result, null, 2);
      isRefusal = false;
    } catch (error) {
      answer = /** @type {Error} */ (error).message;
      isRefusal = true;
    }
    isRunning = false;
    if (!isLeft) show();
  };

  const leave = () => {
    isLeft = true;
    back();
  };

  const show = () =>
    draw(dialog, [
      h("h2", { key: "title" }, method.name.replaceAll(".", " ")),
      h("p", { key: "summary", class: "mute" }, method.summary),
      h(
        "form",
        {
          key: "form",
          class: "fields",
          onsubmit: (/** @type {Event} */ event) => {
            event.preventDefault();
            run();
          },
        },
        wanted.map((each) => field(each, given)),
        h("div", { key: "buttons", class: "buttons" }, h("button", { type: "submit", class: "strong" }, "Run"), h("button", { type: "button", onclick: leave }, "Back")),
      ),
      answer &&
        h(
          "pre",
          { key: "answer", tabindex: "0", class: isRefusal ? "answer refusal" : "answer", role: isRefusal ? "alert" : "status" },
          answer.length > LONGEST ? `${answer.slice(0, LONGEST)}\n… ${answer.length - LONGEST} more characters` : answer,
        ),
    ]);
  draw(dialog, []);
  show();
  /** @type {HTMLElement | null} */ (dialog.querySelector("input, select, button"))?.focus();
}

/**
 * @param {Param} param
 * @param {Record<string, any>} given
 */
function field(param, given) {
  const { schema, name } = param;
  /** @param {Event} event */
  const take = (event) => {
    const input = /** @type {HTMLInputElement} */ (event.currentTarget);
    given[name] = schema.type === "boolean" ? input.checked : input.value;
  };
  const label = `${name.replaceAll("_", " ")}${param.required ? " (needed)" : ""}`;
  let input;
  if (schema.enum) {
    const choices = [...(param.required ? [] : [""]), ...schema.enum];
    if (param.required && !(name in given)) given[name] = choices[0];
    input = h("select", { onchange: take }, choices.map((each) => h("option", { key: each, value: each }, each || "–")));
  } else if (schema.type === "boolean") input = h("input", { type: "checkbox", onchange: take });
  else {
    const hint = schema.default === undefined ? null : String(schema.default);
    const type = schema.type === "integer" ? "number" : "text";
    input = h("input", { type, required: param.required, placeholder: hint, oninput: take });
  }
  return h("label", { key: name }, h("span", null, label), input, h("small", { class: "mute" }, param.description));
}

/**
 * The parameters of a call; what was left empty is left out.
 * @param {Param[]} params
 * @param {Record<string, any>} given
 */
function values(params, given) {
  /** @type {Record<string, any>} */
  const found = {};
  for (const { name, schema } of params) {
    const value = given[name];
    if (value === undefined || value === "" || value === false) continue;
    if (schema.type === "integer") found[name] = Number(value);
    else if (schema.type === "array") found[name] = String(value).split(",").map((each) => each.trim());
    else if (schema.type === "object" || schema.anyOf?.some((each) => each.type === "object")) found[name] = parseJson(name, value);
    else found[name] = value;
  }
  return found;
}

/**
 * What was typed as JSON; words that begin like none are a text.
 * @param {string} name
 * @param {string} text
 */
function parseJson(name, text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (!/^\s*[[{"]/.test(text)) return text;
    throw new Error(`${name}: this is no JSON: ${/** @type {Error} */ (error).message}`);
  }
}
