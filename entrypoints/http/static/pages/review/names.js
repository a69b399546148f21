// Names and lines of a repository as people may read them: what would hide or reorder text is shown.

import { h } from "../../parts/dom.js";

const HIDDEN = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\ufff9-\ufffb]/u;
const SPLIT = new RegExp(`(${HIDDEN.source})`, "u");

/** @param {string} character */
const code = (character) => `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;

/**
 * A text with its invisible characters named, as children of an element.
 * @param {string} text
 * @returns {any[]}
 */
export function reveal(text) {
  if (!HIDDEN.test(text)) return [text];
  return text
    .split(SPLIT)
    .map((part, at) => (at % 2 ? h("span", { class: "odd", title: "a character that cannot be seen" }, code(part)) : part));
}

/**
 * The same as one text, for labels.
 * @param {string} text
 */
export const revealText = (text) => text.split(SPLIT).map((part, at) => (at % 2 ? code(part) : part)).join("");
