// `dev` reloads on change: the work is done by a child process, which is stopped in good order and
// started anew when a source file changes. A child, because a loaded module cannot be unloaded.

import { type ChildProcess, spawn } from "node:child_process";
import { type FSWatcher, readdirSync, watch } from "node:fs";
import path from "node:path";
import { systemClock } from "../../shared/adapters/clock.js";
import type { Timer } from "../../shared/ports.js";
import { EXIT, type Shell } from "../shell.js";
import { onSignals, STARTED } from "../work.js";

type Ended = { readonly code: number; readonly hadStarted: boolean };

/** Answers with the exit code of the last child. */
export async function superviseReloading(params: {
  readonly args: readonly string[];
  readonly folder: string;
  readonly shell: Shell;
}): Promise<number> {
  const { args, folder, shell } = params;
  let child: ChildProcess | null = null;
  let isStopping = false;
  let changeCount = 0;
  let wake = () => {};
  onSignals({
    first(name) {
      isStopping = true;
      // A terminal has told the child as well; it takes a repeat within a second for the same one.
      child?.kill(name);
      wake();
    },
    leave: () => child?.kill("SIGKILL"),
  });
  const stopWatching = watchSources(folder, (file) => {
    if (isStopping) return;
    changeCount += 1;
    shell.complain(`${path.relative(process.cwd(), file)} changed: reloading.`);
    child?.kill("SIGTERM");
    wake();
  });
  try {
    for (let round = 0; ; round += 1) {
      const before = changeCount;
      const running = run(args);
      child = running.child;
      const { code, hadStarted } = await running.ended;
      child = null;
      if (isStopping) return code;
      if (changeCount > before) continue;
      // A first start that is refused is an answer; later ones wait for the mistake to be mended.
      if (code === EXIT.done || (round === 0 && !hadStarted)) return code;
      shell.complain(`The process ended with exit code ${code}; waiting for a change.`);
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
      if (isStopping) return code;
    }
  } finally {
    stopWatching();
  }
}

function run(args: readonly string[]): { child: ChildProcess; ended: Promise<Ended> } {
  const [, program = ""] = process.argv;
  const child = spawn(process.execPath, [...process.execArgv, program, ...args], {
    stdio: ["inherit", "inherit", "inherit", "ipc"],
  });
  let hadStarted = false;
  child.on("message", (message) => {
    hadStarted ||= message === STARTED;
  });
  const ended = new Promise<Ended>((resolve) => {
    const end = (code: number | null) => resolve({ code: code ?? EXIT.impossible, hadStarted });
    child.once("error", () => end(null));
    child.once("exit", end);
  });
  return { child, ended };
}

// Watches the source files of a folder. Its folders are listed one by one: a recursive watch would
// walk node_modules.

/** An editor writes a file in several steps; this much silence ends them. */
const QUIET_MS = 200;
const FOLDERS_MAX = 500;
const SOURCE = /\.([cm]?[jt]sx?|json)$/;
const SKIPPED = /^(\.|node_modules$)/;

/** Calls back with the last changed file once things are quiet. Answers with how to stop. */
function watchSources(folder: string, onChange: (file: string) => void): () => void {
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
