// Writing to one agent or to all of them.

import { h } from "../../parts/dom.js";
import { many } from "../../parts/format.js";

/**
 * @param {{ agents: string[], box: (done: () => void) => any, send: (to: string, asks: boolean) => void, refusal: string, close: () => void }} options
 *   `send` is called with the name of an agent, empty for all
 */
export function drawComposer({ agents, box, send, refusal, close }) {
  const done = () => {
    const form = /** @type {HTMLElement} */ (document.getElementById("composer"));
    const to = /** @type {HTMLSelectElement} */ (form.querySelector("select")).value;
    send(to, /** @type {HTMLInputElement} */ (form.querySelector("input")).checked);
  };
  return h(
    "section",
    { key: "composer", id: "composer", class: "talk-text", "aria-labelledby": "composer-title" },
    h("h2", { id: "composer-title" }, "New message"),
    agents.length
      ? [
          h(
            "label",
            { key: "to" },
            "To ",
            h("select", { "aria-label": "To" }, h("option", { key: "all", value: "" }, `all ${many(agents.length, "agent")}`), agents.map((each) => h("option", { key: `agent ${each}`, value: each }, each))),
          ),
          box(done),
          h("label", { key: "asks", class: "check" }, h("input", { type: "checkbox" }), "needs an answer"),
          h(
            "div",
            { key: "buttons", class: "buttons" },
            h("button", { class: "strong", onclick: done }, "Send"),
            h("button", { class: "quiet", onclick: close }, "Cancel"),
          ),
        ]
      : h("p", { key: "nobody", class: "calm" }, "No agent is at work. ", h("code", null, "herdbook agent add brisk-otter")),
    refusal && h("p", { key: "refusal", class: "trouble", role: "alert" }, refusal),
  );
}
