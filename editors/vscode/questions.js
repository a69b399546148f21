// What a person is asked before a command is given, command by command.
"use strict";

const vscode = require("vscode");

const GRADES = ["bad", "neutral", "good", "excellent"];

/** A person who closed a box; the command is not given then. */
class Declined extends Error {}

async function answered(question) {
  const answer = await question;
  if (answer === undefined) throw new Declined();
  return answer;
}

const typed = (prompt, value) =>
  answered(vscode.window.showInputBox({ prompt, value, ignoreFocusOut: true }));

const picked = (items, placeHolder) =>
  answered(vscode.window.showQuickPick(items, { placeHolder, matchOnDescription: true }));

/** One of the rows that a method lists; by its id, or another field. */
async function chosen(client, method, params, label, placeHolder, field = "id") {
  const rows = await client.sendRequest(method, { ...params, limit: 100 });
  if (rows.length === 0) {
    await vscode.window.showInformationMessage(`Herdbook: there is nothing to choose (${method}).`);
    throw new Declined();
  }
  const items = rows.map((row) => ({ label: row[label], description: row.id, row }));
  return (await picked(items, placeHolder)).row[field];
}

/** The comment at the cursor's line. */
async function atCursor() {
  const editor = vscode.window.activeTextEditor;
  const line = editor?.selection.active.line;
  const shown = editor ? vscode.languages.getDiagnostics(editor.document.uri) : [];
  const comment = shown.find((each) => each.source === "herdbook" && each.range.start.line === line);
  if (comment) return String(comment.code);
  await vscode.window.showInformationMessage("Herdbook: there is no comment at this line.");
  throw new Declined();
}

const QUESTIONS = {
  "herdbook.claim": async (client) => ({
    agent: await chosen(client, "agent.list", {}, "name", "which agent?"),
  }),
  "herdbook.complete": async (client) => {
    const agent = await chosen(client, "agent.list", {}, "name", "which agent?");
    const held = { assignee: agent, status: "in_progress" };
    const task = await chosen(client, "task.list", held, "name", "which task?");
    const summary = await typed("what came of it");
    return summary ? { agent, task, summary } : { agent, task };
  },
  "herdbook.grade": async (client) => ({
    agent: await chosen(client, "agent.list", {}, "name", "whose commit?", "name"),
    commit: await typed("which commit", "HEAD"),
    user: await picked(GRADES, "your grade"),
  }),
  "herdbook.dismiss": async (client) => {
    const open = { status: "pending" };
    return { proposal_id: await chosen(client, "proposal.list", open, "title", "which proposal?") };
  },
  "herdbook.resolve": async () => ({ comment_id: await atCursor() }),
  // Who types here is a person, also where an agent works in the same folder.
  "herdbook.reply": async (_, given) => {
    const comment = given[0] ?? (await atCursor());
    return { comment_id: comment, body: await typed("reply"), author: "you" };
  },
};

/** Whether nothing is left to ask; a reply comes from the menu without its text. */
const isWhole = (command, given) =>
  !(command in QUESTIONS) ||
  (command === "herdbook.reply" ? typeof given[0] === "object" || given.length > 1 : given.length > 0);

/** The arguments of a command, asked for where they are missing; undefined if somebody declined. */
async function ask(client, command, given) {
  if (isWhole(command, given)) return given;
  try {
    return [await QUESTIONS[command](client, given)];
  } catch (error) {
    if (error instanceof Declined) return undefined;
    throw error;
  }
}

module.exports = { ask };
