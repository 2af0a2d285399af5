#!/usr/bin/env node
// Runs the command line: registers the commands (one file per noun in commands/) and turns every result into output on standard
// output, a message on standard error and an exit code. This folder holds flags and output only: it must never decide what the
// library decides, and never send SQL.

import { Command, CommanderError } from "commander";
import { shownJson } from "../shared/json.js";
import type { Call } from "./command.js";
import { readDatabaseFlag } from "./database.js";
import { describeExit } from "./failure.js";
import { noteWrongFlags } from "./flags/errors.js";
import { packageVersion } from "./package-files.js";
import { EXIT, Shell } from "./shell.js";

/** In the order of the help. Loads each command on demand: loading takes most of a short command's time. */
const COMMANDS = {
  init: async () => (await import("./commands/init.js")).initCommand,
  dev: async () => (await import("./commands/dev.js")).devCommand,
  start: async () => (await import("./commands/start.js")).startCommand,
  tick: async () => (await import("./commands/tick.js")).tickCommand,
  next: async () => (await import("./commands/next.js")).nextCommand,
  migrate: async () => (await import("./commands/migrate.js")).migrateCommand,
  move: async () => (await import("./commands/migrate.js")).moveCommand,
  schedules: async () => (await import("./commands/schedules.js")).schedulesCommand,
  calendars: async () => (await import("./commands/calendars.js")).calendarsCommand,
  runs: async () => (await import("./commands/runs.js")).runsCommand,
  queues: async () => (await import("./commands/queues.js")).queuesCommand,
  instances: async () => (await import("./commands/instances.js")).instancesCommand,
  keys: async () => (await import("./commands/keys.js")).keysCommand,
  audit: async () => (await import("./commands/audit.js")).auditCommand,
  pause: async () => (await import("./commands/pause.js")).pauseCommand,
  resume: async () => (await import("./commands/pause.js")).resumeCommand,
  enqueue: async () => (await import("./commands/enqueue.js")).enqueueCommand,
  signal: async () => (await import("./commands/signal.js")).signalCommand,
  exec: async () => (await import("./commands/exec.js")).execCommand,
  locks: async () => (await import("./commands/locks.js")).locksCommand,
  check: async () => (await import("./commands/check.js")).checkCommand,
  repair: async () => (await import("./commands/check.js")).repairCommand,
  recover: async () => (await import("./commands/check.js")).recoverCommand,
  health: async () => (await import("./commands/health.js")).healthCommand,
  prune: async () => (await import("./commands/retention.js")).pruneCommand,
  alerts: async () => (await import("./commands/alerts.js")).alertsCommand,
  stats: async () => (await import("./commands/stats.js")).statsCommand,
  cleanup: async () => (await import("./commands/retention.js")).cleanupCommand,
  top: async () => (await import("./commands/top.js")).topCommand,
  simulate: async () => (await import("./commands/simulate.js")).simulateCommand,
} satisfies Record<string, () => Promise<(call: Call) => Command>>;

const args = process.argv.slice(2);
// Arguments after `--` belong to another program.
const own = args.includes("--") ? args.slice(0, args.indexOf("--")) : args;
const call: Call = {
  shell: new Shell({ isJson: own.includes("--json") }),
  exit: EXIT.done,
  wrong: [],
};
surviveClosedPipes();
// Exits without waiting for the event loop: a handle that the user's code keeps open must not keep the process alive.
process.exit(await run());

async function run(): Promise<number> {
  try {
    await (await program()).parseAsync(args, { from: "user" });
    return call.exit;
  } catch (error) {
    const failure = describeExit(error);
    if (!failure) return EXIT.done;
    const { exit } = failure;
    const isParsing = error instanceof CommanderError;
    const wrong = isParsing ? call.wrong.map(({ text }) => `${text}\n`).join("") : "";
    const message = wrong + failure.message;
    const { shell } = call;
    const document = shownJson(JSON.stringify({ error: failure.error, message }));
    shell.complain(shell.isJson ? document : message);
    return exit;
  }
}

async function program(): Promise<Command> {
  const top = new Command("holdfast")
    .description("A cron scheduler and durable job queue on SQLite or PostgreSQL.")
    .version(packageVersion(), "-V, --version", "show the version")
    .option(
      "--database <url>",
      "sqlite:app.db or postgres://user@host/name (default: HOLDFAST_DATABASE_URL)",
      readDatabaseFlag,
    )
    .option("--json", "one JSON document on standard output, log lines as JSON on standard error")
    .helpOption("-h, --help", "show this help")
    .helpCommand(false)
    .addHelpText(
      "after",
      "\nExit codes: 0 done; 1 the answer is no; 2 wrong usage; 3 it could not be done." +
        "\n\nExample:\n  holdfast dev holdfast.config.mjs",
    );
  for (const load of calledCommands()) top.addCommand((await load())(call));
  forEachCommand(top, (command) => {
    command.exitOverride();
    noteWrongFlags(command, call.wrong);
    command.configureHelp({ showGlobalOptions: true, helpWidth: 100 });
    // run() writes the one message at the end.
    command.configureOutput({ outputError: () => undefined });
    command.helpCommand(false);
  });
  return top;
}

/** The called command, or all commands if that is unclear: for the help and for suggestions. */
function calledCommands(): (() => Promise<(call: Call) => Command>)[] {
  const word = own.find((arg, at) => !arg.startsWith("-") && own[at - 1] !== "--database") ?? "";
  return Object.hasOwn(COMMANDS, word)
    ? [COMMANDS[word as keyof typeof COMMANDS]]
    : Object.values(COMMANDS);
}

function forEachCommand(command: Command, visit: (command: Command) => void): void {
  visit(command);
  for (const each of command.commands) forEachCommand(each, visit);
}

/** `holdfast runs list | head` is no error; an instance whose output pipe closes stops gracefully. */
function surviveClosedPipes(): void {
  let isClosed = false;
  process.stderr.on("error", () => undefined);
  process.stdout.on("error", () => {
    if (isClosed) return;
    isClosed = true;
    if (process.listenerCount("SIGTERM") === 0) process.exit(EXIT.done);
    process.emit("SIGTERM", "SIGTERM");
  });
}
