// Tests wrong calls: exit code 2, one message on standard error with the right form, and nothing on standard output.

import { existsSync, readdirSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { configText, ECHO_JOB, openTerminal, type Terminal } from "./terminal.js";

const RUN = "0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55";

let terminal: Terminal;
beforeAll(() => {
  terminal = openTerminal();
  terminal.write({ "other/holdfast.config.mjs": configText(ECHO_JOB) });
});
afterAll(() => terminal.close());

const MISTAKES: readonly [name: string, args: string[], message: RegExp][] = [
  ["no command", [], /Name a command\./],
  ["an unknown command", ["strat"], /unknown command 'strat'\n\(Did you mean start\?\)/],
  ["an unknown command of a group", ["runs", "lst"], /\(Did you mean list\?\)/],
  ["a group without a command", ["runs"], /Name a command\./],
  [
    "an unknown command of a group that lists by its name",
    ["queues", "lst"],
    /unknown command 'lst'\n\(Did you mean list\?\)/,
  ],
  ["a wrong flag of such a group", ["instances", "--limit", "0"], /a whole number from 1 to 1000/],
  [
    "an unknown option",
    ["runs", "list", "--jsno"],
    /unknown option '--jsno'\n\(Did you mean --json\?\)/,
  ],
  ["one argument too many", ["runs", "list", "all"], /too many arguments/],
  [
    "a missing argument",
    ["runs", "show"],
    /missing required argument 'run'\nFor example: holdfast runs show 0199c1f2-/,
  ],
  ["a missing value", ["runs", "list", "--limit"], /argument missing/],
  [
    "a bad duration",
    ["enqueue", "echo", "{}", "--delay", "5 minutes"],
    /--delay.*must be a duration such as "30s"/,
  ],
  [
    "a duration without a unit",
    ["runs", "list", "--watch", "5"],
    /"5" has no unit: did you mean "5s" or "5ms"\?/,
  ],
  [
    "a bad time",
    ["enqueue", "echo", "{}", "--at", "tomorrow"],
    /^--at "tomorrow": must be a time with its zone such as "2030-01-31T09:00:00Z"/m,
  ],
  [
    "a bad time to explain",
    ["schedules", "explain", "nightly", "25:00"],
    /^<at> "25:00": must be a time with its zone such as "2030-01-31T09:00:00Z"/m,
  ],
  [
    "a bad database URL",
    ["runs", "list", "--database", "mysql://db/app"],
    /neither a SQLite nor a PostgreSQL URL; right would be "sqlite:app.db"/,
  ],
  [
    "a path in place of a database URL",
    ["runs", "list", "--database", "data/app.db"],
    /"data\/app\.db" is neither .* URL, did you mean "sqlite:data\/app\.db"\?/,
  ],
  [
    "a database URL with two meanings",
    ["runs", "list", "--database", "sqlite://app.db"],
    /"sqlite:\/\/app\.db" could mean "sqlite:app\.db" or "sqlite:\/app\.db"/,
  ],
  [
    "a database URL that cannot be read",
    ["runs", "list", "--database", "postgres://app:hunter2 @db:99999/app"],
    /--database: "postgres:\/\/app:\*\*\*@db:99999\/app" is not a PostgreSQL URL/,
  ],
  ["an empty database URL", ["runs", "list", "--database", ""], /right would be "sqlite:app.db"/],
  [
    "a bad status",
    ["runs", "list", "--status", "faild"],
    /^--status "faild": must be one of pending, .* Did you mean failed\?/m,
  ],
  ["a bad limit", ["runs", "list", "--limit", "0"], /a whole number from 1 to 1000/],
  [
    "a bad run id",
    ["runs", "cancel", "42"],
    /^<run> "42": must be a run id, for example 0199c1f2-/m,
  ],
  [
    "a bad cursor",
    ["runs", "list", "--cursor", "next"],
    /must be the cursor that the list before it printed/,
  ],
  ...["audit list", "schedules ticks", "locks history", "instances list"].map(
    (list): [string, string[], RegExp] => [
      `a cursor that ${list} did not give`,
      [...list.split(" "), "--cursor", "next"],
      /^--cursor: must be the nextCursor of an earlier page/,
    ],
  ),
  [
    "a bad beginning of the trail",
    ["audit", "list", "--since", "yesterday"],
    /^--since: must be a duration such as "30s".*An instant such as/,
  ],
  [
    "two wrong ends of a move",
    ["move", "--from", "app.db", "--to", "mysql://app:hunter2@db/app"],
    /^--from: "app\.db" is neither .*\n--to: "mysql:\/\/app:\*\*\*@db\/app" is neither/,
  ],
  [
    "input that is no JSON",
    ["enqueue", "echo", "{market:eu}"],
    /The input is not JSON: .*Quote it for the shell, for example '\{"market":"eu"\}'/,
  ],
  [
    "a bad priority",
    ["enqueue", "echo", "{}", "--priority", "1000"],
    /a whole number from -100 to 100/,
  ],
  [
    "an empty key",
    ["enqueue", "echo", "{}", "--key", ""],
    /--key.*must be a text of 1 to 500 characters such as "order-1042", but is empty/,
  ],
  [
    "two times",
    ["enqueue", "echo", "{}", "--delay", "1s", "--at", "2030-01-31T09:00:00Z"],
    /--at and --delay exclude each other/,
  ],
  [
    "a time limit without waiting",
    ["enqueue", "echo", "{}", "--timeout", "1s"],
    /--timeout limits --wait/,
  ],
  [
    "a watched document",
    ["runs", "list", "--json", "--watch", "1s"],
    /--watch and --json exclude each other/,
  ],
  ["a bad concurrency", ["start", "--concurrency", "many"], /a whole number from 1 to 10000/],
  [
    "no worker, but many runs at a time",
    ["start", "--no-worker", "--concurrency", "5"],
    /--no-worker and --concurrency contradict each other/,
  ],
  ["nothing to do", ["start", "--no-worker", "--no-scheduler", "--no-http"], /leave nothing to do/],
  ["an empty queue name", ["start", "--queues", "mail,,default"], /--queues.*must be a text/],
  [
    "a database beyond this machine",
    ["dev", "--database", "postgres://app:hunter2@db.example.com/app"],
    /postgres:\/\/app:\*\*\*@db\.example\.com\/app is on another machine\. Add --yes/,
  ],
];

test.for(MISTAKES)("%s is refused", async ([, args, message]) => {
  const { code, stdout, stderr } = await terminal.holdfast(args);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toMatch(message);
  expect(stderr).not.toMatch(/\n\s+at |hunter2|\(outputHelp\)/);
});

test("with --json the complaint is JSON too", async () => {
  const { code, stdout, stderr } = await terminal.holdfast(["runs", "show", "42", "--json"]);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(JSON.parse(stderr)).toEqual({
    error: "usage",
    message: expect.stringContaining("must be a run id"),
  });
});

test("a wrong call makes no database", async () => {
  await terminal.holdfast(["runs", "show", RUN]);
  await terminal.holdfast(["enqueue", "echo", "{}"]);
  expect(readdirSync(terminal.folder)).toEqual(["other"]);
  expect(existsSync(`${terminal.folder}/.holdfast`)).toBe(false);
});
