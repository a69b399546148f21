// Calls `herdbook rpc` with vscode-jsonrpc: `node vscode_jsonrpc.cjs SCENE HERDBOOK NODE_MODULES`.
// Facts come out as one line of JSON; test_vscode_jsonrpc.py says what they must be.
"use strict";

const { spawn, execFileSync } = require("node:child_process");
const { once } = require("node:events");
const { createRequire } = require("node:module");
const { join } = require("node:path");

const [scene, program, nodeModules] = process.argv.slice(2);
const rpc = createRequire(join(nodeModules, "here.js"))("vscode-jsonrpc/node");

/** A server, a connection of vscode-jsonrpc to it, and what the connection has no words for. */
function start() {
  const server = spawn(program, ["rpc"], { stdio: ["pipe", "pipe", "inherit"] });
  const batches = queue();
  const strays = queue();
  const inner = new rpc.StreamMessageReader(server.stdout);
  // The library reads frames; batches and answers to what it did not ask are not for its connection.
  const reader = {
    onError: inner.onError,
    onClose: inner.onClose,
    onPartialMessage: inner.onPartialMessage,
    dispose: () => inner.dispose(),
    listen: (take) =>
      inner.listen((message) => {
        if (Array.isArray(message)) batches.put(message);
        else if (message.id === null || message.id === "raw") strays.put(message);
        else take(message);
      }),
  };
  const writer = new rpc.StreamMessageWriter(server.stdin);
  const connection = rpc.createMessageConnection(reader, writer);
  connection.listen();
  return { server, connection, writer, batches, strays };
}

/** What comes, in the order in which it came. */
function queue() {
  const held = [];
  const waiting = [];
  return {
    put: (value) => (waiting.length ? waiting.shift()(value) : held.push(value)),
    next: () => new Promise((take) => (held.length ? take(held.shift()) : waiting.push(take))),
  };
}

/** How a request failed. */
async function failure(promise) {
  try {
    return { result: await promise };
  } catch (error) {
    return { code: error.code, message: error.message, data: error.data };
  }
}

const herdbook = (...words) => JSON.parse(execFileSync(program, [...words, "--json"]));

const SCENES = {
  async requests({ connection }) {
    const byName = await connection.sendRequest("task.list", { limit: 1 });
    const [task] = byName;
    const byPlace = await connection.sendRequest("task.show", rpc.ParameterStructures.byPosition, task.id);
    const name = "größer 🐄 \u2028 \"quoted\"";
    const added = await connection.sendRequest("task.add", { name });
    return { byName, byPlace, name: added.name, echoed: herdbook("task", "show", added.id).name };
  },

  async framing({ server, connection, strays }) {
    const body = Buffer.from('{"jsonrpc":"2.0","id":"raw","method":"task.list","params":{"limit":1}}');
    const type = "Content-Type: application/vscode-jsonrpc; charset=utf-8";
    const frame = Buffer.concat([Buffer.from(`${type}\r\nContent-Length: ${body.length}\r\n\r\n`), body]);
    for (const byte of frame) {
      await new Promise((done) => server.stdin.write(Buffer.from([byte]), done));
    }
    const bytewise = await strays.next();
    const named = (name) => connection.sendRequest("task.add", { name });
    const large = await named("ü".repeat(400) + "🐄");
    server.stdin.write(Buffer.concat([frame, frame.subarray(0, 10)]));
    const first = await strays.next();
    server.stdin.write(frame.subarray(10));
    const second = await strays.next();
    return { answers: [bytewise, first, second].map((each) => each.result.length), large: large.name };
  },

  async errors({ connection, server, strays }) {
    const unknown = await failure(connection.sendRequest("task.lisst"));
    const invalid = await failure(connection.sendRequest("task.list", { limit: "many" }));
    const missing = await failure(connection.sendRequest("task.show", { id: "tsk_0000" }));
    server.stdin.write("Content-Length: 9\r\n\r\n{not json");
    const unreadable = await strays.next();
    server.stdin.write('Content-Length: 17\r\n\r\n{"jsonrpc":"1.0"}');
    const refused = await strays.next();
    const after = await connection.sendRequest("task.list", {});
    return { unknown, invalid, missing, unreadable, refused, after: after.length };
  },

  async notifications({ connection }) {
    const changes = queue();
    connection.onNotification("journal.changed", changes.put);
    const { subscription } = await connection.sendRequest("journal.subscribe", {});
    await connection.sendNotification("task.add", { name: "told, not asked" });
    const own = await changes.next();
    const other = herdbook("task", "add", "by another process");
    const others = await changes.next();
    const stopped = await connection.sendRequest("journal.unsubscribe", { subscription });
    return { own: own.entries, others: others.entries, other: other.id, stopped };
  },

  async batches({ server, connection, batches, strays }) {
    const send = (value) => {
      const body = Buffer.from(JSON.stringify(value));
      server.stdin.write(`Content-Length: ${body.length}\r\n\r\n`);
      server.stdin.write(body);
    };
    send([
      { jsonrpc: "2.0", id: "one", method: "task.list", params: {} },
      { jsonrpc: "2.0", method: "task.add", params: { name: "from a batch" } },
      { jsonrpc: "2.0", id: "two", method: "no.such" },
      17,
    ]);
    const mixed = await batches.next();
    send([]);
    const empty = await strays.next();
    send([{ jsonrpc: "2.0", method: "task.add", params: { name: "unanswered" } }]);
    send([{ jsonrpc: "2.0", id: 3, method: "task.list" }]);
    const next = await batches.next();
    const between = await connection.sendRequest("task.list", {});
    return { mixed, empty, next, between: between.length > 0 };
  },

  async cancellation({ connection }) {
    const source = new rpc.CancellationTokenSource();
    const params = { agent: "brisk-otter", wait: "10m" };
    const waiting = failure(connection.sendRequest("conversation.listen", params, source.token));
    const meanwhile = await connection.sendRequest("task.list", {});
    source.cancel();
    const cancelled = await waiting;
    const after = await connection.sendRequest("task.list", {});
    return { cancelled, meanwhile: meanwhile.length, after: after.length };
  },

  async crowd({ connection }) {
    const order = [];
    const params = { agent: "brisk-otter", wait: "10m" };
    const source = new rpc.CancellationTokenSource();
    const slow = failure(connection.sendRequest("conversation.listen", params, source.token));
    const [task] = await connection.sendRequest("task.list", { limit: 1 });
    const show = async (number) => {
      const shown = await connection.sendRequest("task.show", { id: task.id });
      order.push(number);
      return shown.id;
    };
    const shown = await Promise.all(Array.from({ length: 200 }, (_, number) => show(number)));
    source.cancel();
    await slow;
    return { answers: order.length, same: shown.every((id) => id === task.id) };
  },

  async shutdown({ connection }) {
    const result = await connection.sendRequest("shutdown");
    const refused = await failure(connection.sendRequest("task.list", {}));
    await connection.sendNotification("exit");
    return { result, refused };
  },
};

async function main() {
  const started = start();
  const ended = once(started.server, "exit");
  const facts = await SCENES[scene](started);
  started.server.stdin.end();
  const [code] = await ended;
  console.log(JSON.stringify({ ...facts, code }));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
