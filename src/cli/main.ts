#!/usr/bin/env node
// The command line: wires the commands together, and turns whatever happens into an answer on
// standard output, a message on standard error, and an exit code. What a command does is in its file.

import { createRequire } from "node:module";
import { Command, CommanderError } from "commander";
import type { Call } from "./command.js";
import { alertsCommand } from "./commands/alerts.js";
import { auditCommand } from "./commands/audit.js";
import { calendarsCommand } from "./commands/calendars.js";
import { checkCommand } from "./commands/check.js";
import { cleanupCommand } from "./commands/cleanup.js";
import { devCommand } from "./commands/dev.js";
import { enqueueCommand } from "./commands/enqueue.js";
import { execCommand } from "./commands/exec.js";
import { healthCommand } from "./commands/health.js";
import { initCommand } from "./commands/init.js";
import { instancesCommand } from "./commands/instances.js";
import { locksCommand } from "./commands/locks.js";
import { migrateCommand } from "./commands/migrate.js";
import { moveCommand } from "./commands/move.js";
import { nextCommand } from "./commands/next.js";
import { pauseCommand } from "./commands/pause.js";
import { pruneCommand } from "./commands/prune.js";
import { queuesCommand } from "./commands/queues.js";
import { recoverCommand } from "./commands/recover.js";
import { repairCommand } from "./commands/repair.js";
import { resumeCommand } from "./commands/resume.js";
import { runsCommand } from "./commands/runs.js";
import { schedulesCommand } from "./commands/schedules.js";
import { simulateCommand } from "./commands/simulate.js";
import { startCommand } from "./commands/start.js";
import { statsCommand } from "./commands/stats.js";
import { tickCommand } from "./commands/tick.js";
import { topCommand } from "./commands/top.js";
import { readDatabaseFlag } from "./database.js";
import { describeExit } from "./failure.js";
import { EXIT, Shell } from "./shell.js";
import { noteWrongFlags } from "./wrong-flags.js";

const COMMANDS = [
  initCommand,
  devCommand,
  startCommand,
  tickCommand,
  nextCommand,
  migrateCommand,
  moveCommand,
  schedulesCommand,
  calendarsCommand,
  runsCommand,
  queuesCommand,
  instancesCommand,
  auditCommand,
  pauseCommand,
  resumeCommand,
  enqueueCommand,
  execCommand,
  locksCommand,
  checkCommand,
  repairCommand,
  recoverCommand,
  healthCommand,
  pruneCommand,
  alertsCommand,
  statsCommand,
  cleanupCommand,
  topCommand,
  simulateCommand,
];

const args = process.argv.slice(2);
// What follows `--` belongs to another program.
const own = args.includes("--") ? args.slice(0, args.indexOf("--")) : args;
const call: Call = {
  shell: new Shell({ isJson: own.includes("--json") }),
  exit: EXIT.done,
  wrong: [],
};
surviveClosedPipes();
// Not left to the event loop: a handle that the user's code keeps open must not keep us.
process.exit(await run());

async function run(): Promise<number> {
  try {
    await program().parseAsync(args, { from: "user" });
    return call.exit;
  } catch (error) {
    const failure = describeExit(error);
    if (!failure) return EXIT.done;
    const { exit } = failure;
    const isParsing = error instanceof CommanderError;
    const wrong = isParsing ? call.wrong.map(({ text }) => `${text}\n`).join("") : "";
    const message = wrong + failure.message;
    const { shell } = call;
    shell.complain(shell.isJson ? JSON.stringify({ error: failure.error, message }) : message);
    return exit;
  }
}

function program(): Command {
  const { version } = createRequire(import.meta.url)("../../package.json") as { version: string };
  const top = new Command("holdfast")
    .description("Runs work on the database you have, once, and can say what happened.")
    .version(version, "-V, --version", "show the version")
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
      "\nExit codes: 0 done; 1 the answer is no; 2 called wrongly; 3 it could not be done." +
        "\n\nExample:\n  holdfast dev holdfast.config.mjs",
    );
  for (const add of COMMANDS) top.addCommand(add(call));
  forEachCommand(top, (command) => {
    command.exitOverride();
    noteWrongFlags(command, call.wrong);
    command.configureHelp({ showGlobalOptions: true, helpWidth: 100 });
    // The one message is written at the end, by run().
    command.configureOutput({ outputError: () => undefined });
    command.helpCommand(false);
  });
  return top;
}

function forEachCommand(command: Command, visit: (command: Command) => void): void {
  visit(command);
  for (const each of command.commands) forEachCommand(each, visit);
}

/** `holdfast runs list | head` is no error; an instance whose output nobody reads stops in good order. */
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
