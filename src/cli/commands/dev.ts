// `holdfast dev`: runs an instance for development, and reloads it when a source file changes. It refuses databases on other
// machines: a forgotten variable must not make a laptop part of production. A child process does the work, because a loaded module
// cannot be unloaded; the child is stopped gracefully and started again.

import { type ChildProcess, spawn } from "node:child_process";
import { type FSWatcher, readdirSync, watch } from "node:fs";
import path from "node:path";
import type { Command } from "commander";
import { systemClock } from "../../shared/adapters/clock.js";
import type { Timer } from "../../shared/ports.js";
import { redactUrl } from "../../shared/redact.js";
import { act, type Call, newCommand } from "../command.js";
import { isBeyondThisMachine } from "../database.js";
import { ImpossibleError, UsageError } from "../failure.js";
import { FlagErrors } from "../flags/errors.js";
import { loadInstance, requireConfig } from "../instance.js";
import { EXIT, type Shell } from "../shell.js";
import { onSignals } from "../signals.js";
import { readPlace, STARTED, workUntilSignal } from "../work.js";
import { startOptions, type WorkFlags, withConfig, withWorkOptions } from "./start.js";

/** Shorter than in production: somebody waits for the reload. */
const GRACE_MS = 5_000;

type DevFlags = WorkFlags & { readonly reload: boolean; readonly yes?: boolean };

export function devCommand(call: Call): Command {
  const command = newCommand({
    name: "dev",
    summary: "Run an instance for development: SQLite by default, reloads on change.",
    examples: [
      "dev",
      "dev jobs/holdfast.config.ts --concurrency 2",
      "dev --database postgres://app@db.example.com/app --yes",
    ],
  });
  withWorkOptions(command)
    .option("--no-reload", "do not restart when a source file changes")
    .option("--yes", "use a database on another machine");
  const action = async (flags: DevFlags, config?: string) => {
    const { shell } = call;
    const errors = new FlagErrors(call.wrong);
    const start = errors.read(() => startOptions(flags), {});
    const place = errors.read(() => readPlace(flags, process.env), null);
    errors.read(() => refuseFarFlag(flags), undefined);
    // With wrong flags no child is started: this process reports them.
    if (flags.reload && !errors.isWrong) {
      const folder = path.dirname(requireConfig(config));
      const args = [...process.argv.slice(2), "--no-reload"];
      return superviseReloading({ args, folder, shell });
    }
    ignoreFarEnvironment(shell);
    const holdfast = await errors.load((problems) =>
      loadInstance({ flags: withConfig(flags, config), shell, mayPause: false, problems }),
    );
    refuseFarCode(holdfast.settings().database, flags);
    return workUntilSignal({
      holdfast,
      start,
      place,
      isDevelopment: true,
      graceMs: GRACE_MS,
      shell,
    });
  };
  return act<DevFlags>(command, call, action, { reportsFlagErrors: true });
}

function refuseFarFlag({ database, yes }: DevFlags): void {
  if (database === undefined || yes || !isBeyondThisMachine(database)) return;
  throw new UsageError(
    `${redactUrl(database)} is on another machine. Add --yes to execute its runs here.`,
  );
}

function ignoreFarEnvironment(shell: Shell): void {
  const url = process.env.HOLDFAST_DATABASE_URL;
  if (!url || !isBeyondThisMachine(url)) return;
  // Before the instance is created, which reads the variable.
  delete process.env.HOLDFAST_DATABASE_URL;
  shell.complain(
    `Ignored: HOLDFAST_DATABASE_URL (${redactUrl(url)}) is on another machine. ` +
      "To use it in development, give --database and --yes.",
  );
}

/** A handle cannot be judged; it is the author's own decision. */
function refuseFarCode(database: string, { yes }: DevFlags): void {
  if (yes || !/^postgres(ql)?:/.test(database) || !isBeyondThisMachine(database)) return;
  throw new ImpossibleError(
    `The configuration file's database (${database}) is on another machine. Give --database with one ` +
      "of your own, or --yes to execute its runs here.",
  );
}

type Ended = { readonly code: number; readonly hadStarted: boolean };

/** Returns the exit code of the last child. */
async function superviseReloading(params: {
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
      // A terminal signals the child as well; the child treats a repeat within a second as the same signal.
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
      // A refused first start ends the command; later ones wait for the mistake to be fixed.
      if (code === EXIT.done || (round === 0 && !hadStarted)) return code;
      shell.complain(`The process exited with code ${code}; waiting for a change.`);
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

// Watches the source files of a folder. It watches the folders one by one: a recursive watch would walk node_modules.

/** An editor writes a file in several steps; after this pause it is done. */
const QUIET_MS = 200;
const FOLDERS_MAX = 500;
const SOURCE = /\.([cm]?[jt]sx?|json)$/;
const SKIPPED = /^(\.|node_modules$)/;

/** Calls `onChange` with the last changed file after a pause. Returns a function that stops watching. */
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
        if (name !== null) noteChange(at, name);
      });
      watcher.on("error", () => watcher.close());
      watchers.set(at, watcher);
      for (const entry of entries) {
        if (entry.isDirectory() && !SKIPPED.test(entry.name)) add(path.join(at, entry.name));
      }
    } catch {
      // The folder is missing or cannot be watched: the user can still restart.
    }
  }

  function noteChange(at: string, name: string): void {
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
