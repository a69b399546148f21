"""The plugin for OpenCode, which appends to the spool itself and starts no process.

It names no file of this machine, so a project may commit it.
"""

PLUGIN = """\
import { randomBytes } from "node:crypto"
import { closeSync, fstatSync, mkdirSync, openSync, writeSync } from "node:fs"
import { homedir } from "node:os"
import { join } from "node:path"

const EVENTS = new Set(["command.executed", "session.created", "session.idle", "session.deleted"])

const state = () => {
  const chosen = process.env.XDG_STATE_HOME ?? ""
  if (chosen.startsWith("/")) return join(chosen, "herdbook")
  const inside = process.platform === "darwin" ? "Library/Application Support" : ".local/state"
  return join(homedir(), inside, "herdbook")
}

const append = (line) => {
  const spool = join(state(), "spool")
  mkdirSync(spool, { recursive: true, mode: 0o700 })
  for (let tries = 0; tries < 2; tries += 1) {
    const file = openSync(join(spool, "events.jsonl"), "a", 0o600)
    try {
      const written = writeSync(file, line)
      const { mode, nlink } = fstatSync(file)
      // Cut off, or sealed or taken away by a flush: once more.
      if (written === line.length && nlink > 0 && (mode & 0o200) > 0) return
    } finally {
      closeSync(file)
    }
  }
}

const spool = (event, cwd, raw) => {
  try {
    const told = {
      id: randomBytes(16).toString("hex"),
      at: Date.now() * 1000,
      event,
      cwd,
      env: {
        HERDBOOK_AGENT: process.env.HERDBOOK_AGENT ?? "",
        HERDBOOK_SESSION: process.env.HERDBOOK_SESSION ?? "",
      },
      raw,
    }
    append(Buffer.from("\\n" + JSON.stringify(told) + "\\n"))
  } catch {
    // A record that cannot be kept never disturbs the session.
  }
}

export const Herdbook = async ({ directory }) => {
  const here = directory ?? process.cwd()
  return {
    "tool.execute.after": async (input) => {
      spool("tool.execute.after", here, input ?? {})
    },
    event: async ({ event }) => {
      if (EVENTS.has(event?.type)) spool(event.type, here, event)
    },
  }
}
"""
