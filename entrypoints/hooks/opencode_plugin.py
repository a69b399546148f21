"""The plugin for OpenCode, which appends to the spool itself and starts no process for a tool.

A tool of a halted agent is refused as OpenCode wants it: by an error with the reason. When a
session or OpenCode itself is over, when the spool has grown, and at most every few minutes when a
session rests, a flush is started and left alone. A program that a session starts is told which
session that is, so that git's hook knows whose commit it sees. What `herdbook prime` says stands in
the system prompt: asked for once in a session and again after a compaction, so that the prompt can
be cached. The plugin names no file of this machine, so a project may commit it.
"""

PLUGIN = """\
import { execFile, spawn } from "node:child_process"
import { createHash, randomBytes } from "node:crypto"
import { closeSync, fstatSync, mkdirSync, openSync, readFileSync, writeSync } from "node:fs"
import { homedir } from "node:os"
import { join } from "node:path"

const EVENTS = new Set(["command.executed", "session.created", "session.idle", "session.deleted"])
const REST = 5 * 60 * 1000
const LONGEST_MARKER = 200
const LONGEST_MEMORY = 1000
const LONGEST_EVENT = 1024 * 1024
const SHORT = 2000
const FULL = 1024 * 1024
let flushedAt = Date.now()
let waiting = false
let lastAt = 0
const setups = new Map()
const briefings = new Map()

const state = () => {
  const chosen = process.env.XDG_STATE_HOME ?? ""
  if (chosen.startsWith("/")) return join(chosen, "herdbook")
  const inside = process.platform === "darwin" ? "Library/Application Support" : ".local/state"
  return join(homedir(), inside, "herdbook")
}

// Later than every event before it: the clock here counts whole milliseconds.
const now = () => {
  lastAt = Math.max(Date.now() * 1000, lastAt + 1)
  return lastAt
}

const flushSize = (spool) => {
  try {
    return Number.parseInt(readFileSync(join(spool, "flush-size"), "utf8"), 10) || FULL
  } catch {
    return FULL // nobody has chosen another
  }
}

// Gives whether the spool has just become so long that it is to be flushed.
const append = (line) => {
  const spool = join(state(), "spool")
  mkdirSync(spool, { recursive: true, mode: 0o700 })
  for (let tries = 0; tries < 2; tries += 1) {
    const file = openSync(join(spool, "events.jsonl"), "a", 0o600)
    try {
      const written = writeSync(file, line)
      const { mode, nlink, size } = fstatSync(file)
      // Cut off, or sealed or taken away by a flush: once more.
      if (written === line.length && nlink > 0 && (mode & 0o200) > 0) {
        const full = flushSize(spool)
        return size >= full && size - written < full
      }
    } finally {
      closeSync(file)
    }
  }
  return false
}

// What is too long keeps its fields; its long texts are cut, and its size and digest are told.
const fitting = (raw) => {
  const whole = JSON.stringify(raw ?? null)
  if (Buffer.byteLength(whole) <= LONGEST_EVENT) return raw
  const blake2b = createHash("blake2b512").update(whole).digest("hex")
  const cut = { size: Buffer.byteLength(whole), blake2b }
  const shorten = (_, value) =>
    typeof value === "string" && value.length > SHORT ? value.slice(0, SHORT) + "\u2026" : value
  const fields = JSON.stringify(raw, shorten)
  if (Buffer.byteLength(fields) <= LONGEST_EVENT && raw.constructor === Object) {
    return { ...JSON.parse(fields), herdbook_cut: cut }
  }
  return { herdbook_cut: { ...cut, beginning: whole.slice(0, SHORT) } }
}

const spool = (event, cwd, raw) => {
  try {
    const told = {
      id: randomBytes(16).toString("hex"),
      at: now(),
      event,
      cwd,
      env: {
        HERDBOOK_AGENT: process.env.HERDBOOK_AGENT ?? "",
        HERDBOOK_SESSION: process.env.HERDBOOK_SESSION ?? "",
      },
      raw: fitting(raw),
    }
    waiting = true
    if (append(Buffer.from("\\n" + JSON.stringify(told) + "\\n"))) flush(cwd)
  } catch {
    // A record that cannot be kept never disturbs the session.
  }
}

const marker = (session) =>
  Array.from(Buffer.from(session), (byte) => {
    const letter = String.fromCharCode(byte)
    return /[A-Za-z0-9_-]/.test(letter)
      ? letter
      : "%" + byte.toString(16).toUpperCase().padStart(2, "0")
  }).join("").slice(0, LONGEST_MARKER)

const halted = (session) => {
  const agent = process.env.HERDBOOK_AGENT
  const sessions = [process.env.HERDBOOK_SESSION, session].filter(Boolean).map(String)
  for (const name of [...(agent ? ["agent=" + marker(agent)] : []), ...sessions.map(marker)]) {
    try {
      return readFileSync(join(state(), "halted", name), "utf8").split("\\n", 1)[0]
    } catch {
      // No marker: nobody has halted it.
    }
  }
  return null
}

const remember = (session, { agent, model }) => {
  setups.delete(session)
  if (setups.size >= LONGEST_MEMORY) setups.delete(setups.keys().next().value)
  setups.set(session, { agent, model: model?.modelID })
}

const prime = (session, cwd) =>
  new Promise((resolve) => {
    const env = { ...process.env, HERDBOOK_SESSION: process.env.HERDBOOK_SESSION || session }
    const options = { cwd, env, timeout: 10_000, maxBuffer: 1 << 16 }
    // Without Herdbook or without a plan here there is nothing to tell.
    execFile("herdbook", ["prime"], options, (error, text) => resolve(error ? "" : text.trim()))
  })

const briefing = (session, cwd) => {
  if (!briefings.has(session)) {
    if (briefings.size >= LONGEST_MEMORY) briefings.delete(briefings.keys().next().value)
    briefings.set(session, prime(session, cwd))
  }
  return briefings.get(session)
}

const flush = (cwd) => {
  flushedAt = Date.now()
  waiting = false
  try {
    const started = spawn("herdbook", ["flush", "--gently"], {
      cwd,
      detached: true,
      stdio: "ignore",
    })
    started.on("error", () => {}) // not installed here: what waits goes on waiting
    started.unref()
  } catch {
    // As above.
  }
}

export const Herdbook = async ({ directory }) => {
  const here = directory ?? process.cwd()
  return {
    "tool.execute.before": async (input) => {
      const reason = halted(input?.sessionID)
      if (reason !== null) throw new Error(reason)
    },
    "shell.env": async (input, output) => {
      if (!input?.sessionID || !output?.env) return
      // OpenCode may itself run in another agent's session, which is not the one that commits.
      Object.assign(output.env, { CLAUDE_CODE_SESSION_ID: "", CODEX_THREAD_ID: "" })
      output.env.HERDBOOK_SESSION = input.sessionID
    },
    "experimental.chat.system.transform": async (input, output) => {
      if (!input?.sessionID || !Array.isArray(output?.system)) return
      const text = await briefing(input.sessionID, here)
      if (text) output.system.push(text)
    },
    "chat.message": async (input, output) => {
      remember(input?.sessionID, output?.message ?? {})
    },
    "tool.execute.after": async (input, output) => {
      const exit = output?.metadata?.exit
      spool("tool.execute.after", here, { ...input, exit, ...setups.get(input?.sessionID) })
    },
    event: async ({ event }) => {
      if (EVENTS.has(event?.type)) spool(event.type, here, event)
      if (event?.type === "session.compacted") briefings.delete(event.properties?.sessionID)
      const rests = event?.type === "session.idle" && Date.now() - flushedAt > REST
      if (rests || event?.type === "session.deleted") flush(here)
    },
    dispose: async () => {
      if (waiting) flush(here)
    },
  }
}
"""
