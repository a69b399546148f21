// Herdbook in VS Code: starts `herdbook rpc` as a language server, which shows review comments
// and has the commands. What a command needs and was not given is asked for here.
"use strict";

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");
const { ask } = require("./questions");

/** @type {LanguageClient | undefined} */
let client;

/** A folder of this machine; a window without one is opened anew when it gets one. */
function firstFolder() {
  return vscode.workspace.workspaceFolders?.find((each) => each.uri.scheme === "file");
}

/** The program, and the folder it starts in; the server learns of all folders by itself. */
function serverOptions(folder) {
  const command = vscode.workspace.getConfiguration("herdbook").get("path", "herdbook");
  return { command, args: ["rpc"], options: { cwd: folder.uri.fsPath } };
}

/** Ask for what is missing, then let the server do it; what went wrong is told in its own words. */
async function executeCommand(command, given) {
  try {
    const asked = await ask(client, command, given);
    return asked && (await client.sendRequest("workspace/executeCommand", { command, arguments: asked }));
  } catch (error) {
    vscode.window.showErrorMessage(`Herdbook: ${error.message ?? error}`);
    return undefined;
  }
}

async function start() {
  const folder = firstFolder();
  if (!folder) return;
  client = new LanguageClient("herdbook", "Herdbook", serverOptions(folder), {
    documentSelector: [{ scheme: "file" }],
    middleware: { executeCommand },
  });
  try {
    await client.start();
  } catch (error) {
    complain(error); // nobody waits until somebody reads it
  }
}

async function complain(error) {
  const sentence = `Herdbook did not start: ${error.message ?? error}. Is herdbook.path right?`;
  const choice = await vscode.window.showWarningMessage(sentence, "Open the Setting");
  if (choice) await vscode.commands.executeCommand("workbench.action.openSettings", "herdbook.path");
}

async function stop() {
  const stopping = client;
  client = undefined;
  if (stopping?.needsStop()) await stopping.stop();
}

async function activate(context) {
  const changed = vscode.workspace.onDidChangeConfiguration(async (event) => {
    if (!event.affectsConfiguration("herdbook.path")) return;
    await stop();
    await start();
  });
  context.subscriptions.push(changed);
  await start();
  // For other extensions: any method of Herdbook.
  return { request: (method, params) => client?.sendRequest(method, params) };
}

module.exports = { activate, deactivate: stop };
