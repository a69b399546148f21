// Calls operations of the server. A refusal is an error whose message is the server's own sentence.

import { isPast, shownMoment } from "./moment.js";
import { shownRepository } from "./repository.js";

/**
 * @import { Repository } from "./repository.js"
 * @typedef {{ name: string, description?: string, required?: boolean, schema: { type?: string, anyOf?: { type?: string }[], enum?: string[], default?: any } }} Param
 * @typedef {{ name: string, summary: string, params: Param[], "x-past"?: boolean }} Method
 */

/** A refusal of the server, or its absence (code 0). */
export class Refusal extends Error {
  /**
   * @param {string} message
   * @param {number} code
   * @param {Record<string, any> | null} [data] the attributes of the server's error
   */
  constructor(message, code, data = null) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

let number = 0;

/** The folder whose plan is shown; null until the server has said which there are. */
export const chosenFolder = () => shownRepository()?.folder ?? null;

/**
 * @param {string} path
 * @param {RequestInit} [options]
 */
async function ask(path, options) {
  try {
    return await fetch(path, options);
  } catch {
    throw new Refusal("The server does not answer; `herdbook serve` starts it.", 0);
  }
}

/** @type {Promise<Method[]> | null} */
let asked = null;

/**
 * All methods of the server, which is asked once.
 * @returns {Promise<Method[]>}
 */
export function readMethods() {
  asked ??= callNow("rpc.discover").then((answer) => answer.methods);
  asked.catch(() => (asked = null));
  return asked;
}

/** @param {string} method */
const hasPast = async (method) => (await readMethods()).some((each) => each.name === method && each["x-past"]);

/**
 * Call an operation, such as `task.show`, for the moment that is shown. At an earlier one, those
 * that have no past are refused: what changes something, and what is not known of then.
 * @param {string} method
 * @param {Record<string, any>} [params]
 * @returns {Promise<any>}
 */
export async function call(method, params = {}) {
  const moment = shownMoment();
  if (!moment) return callNow(method, params);
  if (await hasPast(method)) return callNow(method, { ...params, at: moment.seq });
  throw new Refusal(`“${method.replaceAll(".", " ")}” is about now; this is an earlier moment, which can only be read.`, 0, { about: "now" });
}

/**
 * The same, but null if nothing is known of it at the moment that is shown.
 * @param {string} method
 * @param {Record<string, any>} [params]
 * @returns {Promise<any>}
 */
export async function callIfKnown(method, params = {}) {
  return isPast() && !(await hasPast(method)) ? null : call(method, params);
}

/**
 * Call an operation for now, whatever is shown.
 * @param {string} method
 * @param {Record<string, any>} [params]
 * @returns {Promise<any>}
 */
export async function callNow(method, params = {}) {
  const folder = chosenFolder();
  const where = folder ? `?folder=${encodeURIComponent(folder)}` : "";
  const answer = await ask(`/rpc${where}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: ++number, method, params }),
  });
  const data = await answer.json();
  if (typeof data.error === "string") throw new Refusal(data.error, answer.status);
  if (data.error) throw new Refusal(data.error.message, data.error.code, data.error.data);
  return data.result;
}

/** Exchange the ticket in the address, if there is one, for a cookie, and keep the repository beside it. */
export async function exchangeTicket() {
  const said = new URLSearchParams(location.hash.slice(1));
  const [ticket, repository] = [said.get("t"), said.get("repo")];
  if (!ticket) return;
  const asked = new URLSearchParams(location.search);
  if (repository) asked.set("repo", repository);
  history.replaceState(null, "", asked.size ? `${location.pathname}?${asked}` : location.pathname);
  const answer = await ask("/session", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ ticket }),
  });
  if (!answer.ok) throw new Refusal((await answer.json()).error, answer.status);
}

/**
 * The repositories that are served, the first one first.
 * @returns {Promise<Repository[]>}
 */
export async function readRepositories() {
  const answer = await ask("/spaces");
  const data = await answer.json();
  if (!answer.ok) throw new Refusal(data.error, answer.status);
  return data.filter((/** @type {any} */ each) => each.area === "work");
}
