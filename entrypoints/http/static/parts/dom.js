// Draws a tree of plain objects and, when drawn again, changes only what differs. Children with a
// `key` keep their element wherever they move, and with it the focus, the selection and the scroll
// position. All text becomes a text node: nothing is ever parsed as HTML. Links keep the moment and the repository.

import { addressOf } from "./moment.js";

/**
 * @typedef {{ tag: string, key: string | undefined, props: Record<string, any>, children: Child[] }} Drawing
 * @typedef {Drawing | string} Child
 * @typedef {{ node: Node, child: Child, children: Drawn[] }} Drawn
 */

const SVG = "http://www.w3.org/2000/svg";
/** @type {WeakMap<Node, Drawn[]>} */
const drawn = new WeakMap();

/**
 * Describe an element. Functions are event handlers, `style` is an object, true is an attribute
 * without a value; false, null and undefined are nothing, among children too.
 * @param {string} tag
 * @param {Record<string, any> | null} [props]
 * @param {...any} children
 * @returns {Drawing}
 */
export function h(tag, props, ...children) {
  const { key, ...rest } = props ?? {};
  if (tag === "a" && rest.href) rest.href = addressOf(rest.href);
  /** @type {Child[]} */
  const found = [];
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    found.push(typeof child === "object" ? child : String(child));
  }
  return { tag, key: key === undefined ? undefined : String(key), props: rest, children: found };
}

/**
 * A sentence whose commands, which stand in backticks, are shown as code.
 * @param {string} text
 */
export const withCode = (text) => text.split("`").map((part, at) => (at % 2 ? h("code", null, part) : part));

/**
 * Draw children into an element, in place of what was drawn there before.
 * @param {Element} parent
 * @param {any[]} children
 */
export function draw(parent, children) {
  const wanted = h("", null, children).children;
  const before = drawn.get(parent);
  if (!before) parent.replaceChildren();
  drawn.set(parent, patch(parent, before ?? [], wanted));
}

/** @param {Child} child */
const identity = (child) =>
  typeof child === "string" ? "#text" : `${child.tag} ${child.key ?? ""}`;

/**
 * @param {Element} parent
 * @param {Drawn[]} before
 * @param {Child[]} wanted
 * @returns {Drawn[]}
 */
function patch(parent, before, wanted) {
  /** @type {Map<string, Drawn[]>} */
  const free = new Map();
  for (const each of before) {
    const name = identity(each.child);
    const same = free.get(name);
    if (same) same.push(each);
    else free.set(name, [each]);
  }
  const now = wanted.map((child) => {
    const old = free.get(identity(child))?.shift();
    return old ? update(old, child) : create(parent, child);
  });
  for (const left of free.values()) for (const each of left) parent.removeChild(each.node);
  let at = parent.firstChild;
  for (const { node } of now) {
    if (node === at) at = at.nextSibling;
    else parent.insertBefore(node, at);
  }
  return now;
}

/**
 * @param {Element} parent
 * @param {Child} child
 * @returns {Drawn}
 */
function create(parent, child) {
  if (typeof child === "string") return { node: document.createTextNode(child), child, children: [] };
  const isSvg = child.tag === "svg" || (parent.namespaceURI === SVG && parent.tagName !== "foreignObject");
  const node = isSvg ? document.createElementNS(SVG, child.tag) : document.createElement(child.tag);
  for (const [name, value] of Object.entries(child.props)) set(node, name, undefined, value);
  return { node, child, children: patch(node, [], child.children) };
}

/**
 * @param {Drawn} old
 * @param {Child} child
 * @returns {Drawn}
 */
function update(old, child) {
  if (typeof child === "string" || typeof old.child === "string") {
    if (old.child !== child) old.node.nodeValue = String(child);
    return { node: old.node, child, children: [] };
  }
  const node = /** @type {Element} */ (old.node);
  const before = old.child.props;
  for (const name of Object.keys(before)) {
    if (!(name in child.props)) set(node, name, before[name], undefined);
  }
  for (const [name, value] of Object.entries(child.props)) {
    if (before[name] !== value) set(node, name, before[name], value);
  }
  return { node, child, children: patch(node, old.children, child.children) };
}

/**
 * @param {any} node
 * @param {string} name
 * @param {any} before
 * @param {any} value
 */
function set(node, name, before, value) {
  if (name === "style") {
    // By properties: a style attribute is what the page's policy forbids.
    for (const each of Object.keys(before ?? {})) {
      if (!(each in (value ?? {}))) node.style.removeProperty(each);
    }
    for (const [each, to] of Object.entries(value ?? {})) node.style.setProperty(each, to);
  } else if (name.startsWith("on") && name in node) node[name] = value ?? null;
  else if (name.startsWith("on")) {
    // Such as focusin: an event without a property of its own.
    if (before) node.removeEventListener(name.slice(2), before);
    if (value) node.addEventListener(name.slice(2), value);
  } else if (name === "value" || name === "checked") node[name] = value ?? "";
  else if (value === undefined || value === null || value === false) node.removeAttribute(name);
  else node.setAttribute(name, value === true ? "" : String(value));
}
