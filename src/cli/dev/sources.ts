// Watches the source files of a folder. Its folders are listed one by one: a recursive watch would
// walk node_modules.

import { type FSWatcher, readdirSync, watch } from "node:fs";
import path from "node:path";
import { systemClock } from "../../shared/adapters/clock.js";
import type { Timer } from "../../shared/ports.js";

/** An editor writes a file in several steps; this much silence ends them. */
const QUIET_MS = 200;
const FOLDERS_MAX = 500;
const SOURCE = /\.([cm]?[jt]sx?|json)$/;
const SKIPPED = /^(\.|node_modules$)/;

/** Calls back with the last changed file once things are quiet. Answers with how to stop. */
export function watchSources(folder: string, onChange: (file: string) => void): () => void {
  const watchers = new Map<string, FSWatcher>();
  let timer: Timer | null = null;
  add(folder);
  return () => {
    timer?.cancel();
    for (const watcher of watchers.values()) watcher.close();
  };

  function add(at: string): void {
    if (watchers.has(at) || watchers.size >= FOLDERS_MAX) return;
    try {
      const entries = readdirSync(at, { withFileTypes: true });
      const watcher = watch(at, (_, name) => {
        if (name !== null) look(at, name);
      });
      watcher.on("error", () => watcher.close());
      watchers.set(at, watcher);
      for (const entry of entries) {
        if (entry.isDirectory() && !SKIPPED.test(entry.name)) add(path.join(at, entry.name));
      }
    } catch {
      // No folder, or none that can be watched: the user can still start anew.
    }
  }

  function look(at: string, name: string): void {
    if (SKIPPED.test(name)) return;
    const file = path.join(at, name);
    if (!SOURCE.test(name)) {
      if (path.extname(name) === "") add(file); // A new folder, perhaps.
      return;
    }
    timer?.cancel();
    timer = systemClock.timer(QUIET_MS, () => onChange(file));
  }
}
