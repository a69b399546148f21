// Loads the packaged extension with a stand-in for VS Code's own module: `node load_extension.cjs FOLDER`.
// The stand-in has every name as an empty class, so this proves that modules are found, no more.
"use strict";

const Module = require("node:module");

class Nothing {}
const vscode = new Proxy({}, { get: (_, name) => name === "__esModule" || Nothing });
const load = Module._load;
Module._load = (name, ...more) => (name === "vscode" ? vscode : load(name, ...more));

console.log(Object.keys(require(process.argv[2])).sort().join(" "));
