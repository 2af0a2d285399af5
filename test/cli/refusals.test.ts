// Tests refused commands: exit code 3, one message that says what to do, no secret in it and no stack.

import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { configText, ECHO_JOB, type Ended, openTerminal, type Terminal } from "./terminal.js";

let terminal: Terminal;
beforeEach(() => {
  terminal = openTerminal();
});
afterEach(() => terminal.close());

function expectRefusal({ code, stdout, stderr }: Ended, message: RegExp): void {
  expect({ code, stdout }).toEqual({ code: 3, stdout: "" });
  expect(stderr).toMatch(message);
  expect(stderr).not.toMatch(/hunter2|Unexpected: |node:internal/);
}

const LOOKING = [
  ...["runs list", "runs show <id>", "runs cancel <id>", "runs retry <id>", "enqueue echo {}"],
  ...["list", "ticks", "show x", "delete x", "pause x", "resume x", "trigger x", "test x"].map(
    (command) => `schedules ${command}`,
  ),
  "schedules preview x",
  "schedules versions x",
  "schedules explain x 2026-01-01",
  "schedules update x --every 1h",
  "schedules create x --job echo --every 1h",
  "schedules backfill x --from 2026-01-01 --to 2026-01-02",
  ...["list", "show x", "set x --days mon", "delete x"].map((command) => `calendars ${command}`),
  "cleanup",
  "alerts list",
  "alerts show <id>",
  "alerts mute <id> --for 2h",
  "alerts acknowledge <id>",
  "alerts resolve <id>",
];

test.for(LOOKING)("%s on a database that does not exist makes none", async (command) => {
  const args = command.replace("<id>", "0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55").split(" ");
  expectRefusal(
    await terminal.holdfast([...args, "--database", "sqlite:data/app.db"]),
    /The database at sqlite:.*data\/app\.db could not be reached \(tried: open a SQLite file that does not exist\)\.\nCheck --database .* make the file\.$/m,
  );
  expect(existsSync(path.join(terminal.folder, "data"))).toBe(false);
});

test("plan on a database that does not exist makes none", async () => {
  terminal.write({ "holdfast.config.mjs": configText(ECHO_JOB, '{ database: "sqlite:app.db" }') });
  expectRefusal(await terminal.holdfast(["schedules", "plan"]), /app\.db could not be reached/);
  expect(existsSync(path.join(terminal.folder, "app.db"))).toBe(false);
});

test("a server that cannot be reached is named without its password", async () => {
  const { code, stdout, stderr } = await terminal.holdfast([
    "runs",
    "list",
    "--json",
    "--database",
    "postgres://app:hunter2@127.0.0.1:1/app",
  ]);
  expect({ code, stdout }).toEqual({ code: 3, stdout: "" });
  const { error, message } = JSON.parse(stderr);
  expect(error).toBe("store_unavailable");
  expect(message).toMatch(
    /postgres:\/\/app:\*\*\*@127\.0\.0\.1:1\/app could not be reached.*ECONNREFUSED/,
  );
  expect(message).toMatch(/Check --database, HOLDFAST_DATABASE_URL and whether the server runs\./);
});

test("an instance whose server cannot be reached does not start", async () => {
  terminal.write({ "holdfast.config.mjs": configText(ECHO_JOB, "{}") });
  const env = {
    HOLDFAST_DATABASE_URL: "postgres://app:hunter2@127.0.0.1:1/app",
    HOLDFAST_START_TIMEOUT: "0s",
  };
  expectRefusal(await terminal.holdfast(["start"], { env }), /could not be reached/);
});

test("a file that is not a database is refused and left as it is", async () => {
  terminal.write({ "notes.txt": "Dear diary, today I was mistaken for a database.\n".repeat(100) });
  expectRefusal(
    await terminal.holdfast(["runs", "list", "--database", "sqlite:notes.txt"]),
    /notes\.txt" is not a SQLite database \(or is damaged\); give the path of one/,
  );
});

test("a SQLite library that can lose commits is refused", async () => {
  const handle = `{
    exec() {},
    prepare: () => ({ get: () => ({ version: "3.45.1" }), all: () => [], run: () => ({ changes: 0 }) }),
    close() {},
  }`;
  terminal.write({ "holdfast.config.mjs": configText(ECHO_JOB, `{ database: ${handle} }`) });
  expectRefusal(
    await terminal.holdfast(["start"]),
    /Found SQLite 3\.45\.1, but SQLite 3\.51\.3 or newer is needed\. .*Use the bundled library \(give a path, not a handle\)/,
  );
});

test("every wrong variable is named at once", async () => {
  terminal.write({ "holdfast.config.mjs": configText(ECHO_JOB, "{}") });
  const env = {
    HOLDFAST_DATABASE_URL: "sqlite:app.db",
    HOLDFAST_POLL_INTERVAL: "often",
    HOLDFAST_WORKER_ENABLED: "yes",
    HOLDFAST_HISTORY_RETENTION_DAYS: "-1",
    HOLDFAST_LOG_LEVEL: "loud",
  };
  const ended = await terminal.holdfast(["start"], { env });
  expectRefusal(ended, /^HOLDFAST_/);
  for (const name of Object.keys(env).slice(1)) expect(ended.stderr).toContain(`${name}: `);
});

test("flags, variables and options in code that are wrong are named in one report", async () => {
  const options = '{ pol: "1s", schema: "No", lockLease: "soon", shell: { commands: {} } }';
  terminal.write({ "holdfast.config.mjs": configText('console.log("went on");', options) });
  const env = {
    HOLDFAST_DATABASE_URL: "mysql://app:hunter2@db/app",
    HOLDFAST_HOST: "not a host",
    HOLDFAST_PORT: "many",
    HOLDFAST_READ_SECRET: "",
    HOLDFAST_LOG_FORMAT: "yaml",
    HOLDFAST_LOG_LEVEL: "loud",
    HOLDFAST_WORKER_ENABLED: "perhaps",
  };
  const flags = ["--concurrency", "0", "--heartbeat", "thraed"];
  const called = await terminal.holdfast(["start", ...flags], { env });
  expect(called).toMatchObject({ code: 2, stdout: "" });
  const named = [...called.stderr.matchAll(/^(?:new )?(\S+): /gm)].map(([, field]) => field);
  expect(named.sort()).toEqual(
    [
      ...["--concurrency", "--heartbeat"],
      ...["HOLDFAST_HOST", "HOLDFAST_PORT", "HOLDFAST_READ_SECRET", "HOLDFAST_LOG_FORMAT"],
      ...["HOLDFAST_LOG_LEVEL", "HOLDFAST_WORKER_ENABLED", "database"],
      ...["Holdfast().pol", "schema", "lockLease", "shell"],
    ].sort(),
  );
  expect(called.stderr).not.toMatch(/hunter2|went on/);
  // Without wrong flags it is no wrong call, but a start that is refused.
  const refused = await terminal.holdfast(["start"], { env });
  expect(refused).toMatchObject({ code: 3, stdout: "" });
  for (const name of ["HOLDFAST_PORT", "lockLease", "HOLDFAST_LOG_FORMAT"])
    expect(refused.stderr).toContain(`${name}: `);
});

test("every wrong flag of a call is named at once", async () => {
  const args = ["runs", "list", "--limit", "0", "--status", "faild", "--watch", "5"];
  const { code, stderr } = await terminal.holdfast(args);
  expect(code).toBe(2);
  for (const flag of ['--limit "0"', '--status "faild"', '--watch "5"'])
    expect(stderr).toContain(`${flag}: `);
});

test("a log format that does not exist is refused", async () => {
  terminal.write({ "holdfast.config.mjs": configText(ECHO_JOB) });
  expectRefusal(
    await terminal.holdfast(["start"], { env: { HOLDFAST_LOG_FORMAT: "yaml" } }),
    /HOLDFAST_LOG_FORMAT: must be "pretty" or "json"/,
  );
});

test("an unknown variable of ours is named on standard error with the one that was meant, and the command goes on", async () => {
  terminal.write({ "holdfast.config.mjs": configText(ECHO_JOB) });
  const env = { HOLDFAST_POL_INTERVAL: "5s", HOLDFAST_TEST_ONLY: "1" };
  const stored = await terminal.holdfast(["enqueue", "echo", "{}"], { env });
  expect(stored.code).toBe(0);
  expect(stored.stderr).toMatch(
    /^\S+ ! .*HOLDFAST_POL_INTERVAL.*Did you mean HOLDFAST_POLL_INTERVAL\?\n$/,
  );
  const listed = await terminal.begin(["runs", "list", "--json"], { env }).ended;
  expect(listed.code).toBe(0);
  expect(JSON.parse(listed.stderr)).toMatchObject({
    ...{ event: "variable.unknown", variable: "HOLDFAST_POL_INTERVAL" },
  });
});

test("a bad database URL in the environment is refused without its password", async () => {
  expectRefusal(
    await terminal.holdfast(["runs", "list"], {
      env: { HOLDFAST_DATABASE_URL: "mysql://app:hunter2@db/app" },
    }),
    /"mysql:\/\/app:\*\*\*@db\/app" is neither a SQLite nor a PostgreSQL URL; right would be/,
  );
});

const BAD_CONFIGS: readonly [name: string, text: string, message: RegExp][] = [
  [
    "an option that does not exist",
    configText("", "{ databse: 1 }"),
    /new Holdfast\(\)\.databse: is not known\. Did you mean "database"\?/,
  ],
  [
    "a bad duration",
    configText("", '{ poll: "1 second" }'),
    /poll: must be a duration such as "30s"/,
  ],
  [
    "numbers that contradict each other",
    configText('holdfast.job("slow", { retry: { delay: "5m", max: "10s" } });'),
    /job\("slow"\)\.retry\.delay \(5 min\) is longer than job\("slow"\)\.retry\.max \(10 s\); raise max or shorten delay/,
  ],
  [
    "a lease that is too short",
    configText('holdfast.job("slow", { lease: "10ms" });'),
    /job\("slow"\)\.lease: must be at least 1 s, but is 10 ms/,
  ],
  [
    "a job declared twice",
    configText(`${ECHO_JOB}\n${ECHO_JOB}`),
    /A job named echo is already registered[^\n]*\n\s+at [^\n]*holdfast\.config\.mjs:5/,
  ],
  [
    "a missing default export",
    "export const holdfast = 1;\n",
    /must default-export its Holdfast, but its default export is missing\. For example/,
  ],
  [
    "a default export of something else",
    "export default {};\n",
    /its default export is an object of another kind/,
  ],
  ["a syntax error", "export default {\n", /holdfast\.config\.mjs:\d+\n[\s\S]*SyntaxError/],
  [
    "a mistake in the user's code",
    "const port = undefined;\nport.toString();\n",
    /Cannot read properties of undefined[\s\S]*holdfast\.config\.mjs:2/,
  ],
  [
    "a package that is not installed",
    'import "no-such-package";\n',
    /Cannot find package 'no-such-package'/,
  ],
];

test.for(BAD_CONFIGS)("a configuration file with %s is refused", async ([, text, message]) => {
  terminal.write({ "holdfast.config.mjs": text });
  expectRefusal(await terminal.begin(["start"]).ended, message);
  expect(existsSync(path.join(terminal.folder, "app.db"))).toBe(false);
});

test("a mistake in a module of the user's is shown with its place, whatever its folder is called", async () => {
  terminal.write({
    "holdfast.config.mjs": 'import "./dist/core/settings.mjs";\n',
    "dist/core/settings.mjs": "const port = undefined;\nport.toString();\n",
  });
  expectRefusal(await terminal.begin(["start"]).ended, /dist\/core\/settings\.mjs:2/);
});

test("a start without a configuration file says which names it looked for", async () => {
  expectRefusal(
    await terminal.holdfast(["start"]),
    /searched for holdfast\.config\.ts, holdfast\.config\.mjs, holdfast\.config\.js/,
  );
  expectRefusal(
    await terminal.holdfast(["dev", "nowhere.mjs"]),
    /There is no configuration file .*nowhere\.mjs/,
  );
});

test("a TypeScript file that this Node cannot load says what to do", async () => {
  // Outside of the repository, whose own tsx would be found.
  const folder = mkdtempSync(path.join(tmpdir(), "holdfast-cli-"));
  const file = path.join(folder, "holdfast.config.ts");
  writeFileSync(file, "const nothing: undefined = undefined;\nexport default nothing;\n");
  try {
    const { typescript } = process.features as { typescript?: unknown };
    expectRefusal(
      await terminal.holdfast(["start", file]),
      typescript ? /must default-export/ : /npm install --save-dev tsx.*use Node 22\.18 or later/,
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("a database in the code that lies beyond this machine is not used by dev", async () => {
  const url = "postgres://app:hunter2@db.example.com/app";
  terminal.write({ "holdfast.config.mjs": configText(ECHO_JOB, `{ database: "${url}" }`) });
  expectRefusal(
    await terminal.begin(["dev"]).ended,
    /\(postgres:\/\/app:\*\*\*@db\.example\.com\/app\) is on another machine\. Give --database/,
  );
});

test.for([
  [
    "a secret that is set but empty",
    { HOLDFAST_READ_SECRET: "" },
    [],
    /HOLDFAST_READ_SECRET: is set but empty/,
  ],
  [
    "an address beyond this machine without a secret",
    {},
    ["--host", "0.0.0.0"],
    /--host: "0\.0\.0\.0"/,
  ],
  ["a port that is none", { HOLDFAST_PORT: "80a" }, [], /HOLDFAST_PORT: must be a whole number/],
] as const)("%s refuses the start before anything was done", async ([, env, args, message]) => {
  terminal.write({ "holdfast.config.mjs": configText(ECHO_JOB) });
  const refused = await terminal.holdfast(["start", ...args], { env });
  expectRefusal(refused, message);
  expect(refused.stdout).toBe("");
  expect(existsSync(path.join(terminal.folder, "app.db"))).toBe(false);
});

test("with --database the configuration of this folder is executed only by commands that need it, or by --config", async () => {
  terminal.write({ "holdfast.config.mjs": configText(ECHO_JOB, '{ database: "sqlite:app.db" }') });
  expect(await terminal.holdfast(["migrate"])).toMatchObject({ code: 0 });
  terminal.write({ "holdfast.config.mjs": 'throw new Error("the file was executed");\n' });
  const database = ["--database", "sqlite:app.db"];
  const id = "0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55";
  for (const command of ["runs list", "schedules list", "health", "cleanup", "queues pause mail"]) {
    const { stderr } = await terminal.holdfast([...command.split(" "), ...database]);
    expect([command, stderr]).toEqual([command, ""]);
  }
  const { stderr } = await terminal.holdfast(["runs", "show", id, ...database]);
  expect(stderr).toMatch(/There is no run/);
  // Their work depends on the code: its retention, its own checks, its destinations, its jobs.
  const needing = ["prune", "check", "alerts test", "enqueue echo {}", "schedules plan", "migrate"];
  for (const command of [...needing, "runs list --config holdfast.config.mjs", "runs list"]) {
    const flags = command === "runs list" ? [] : database;
    expectRefusal(
      await terminal.holdfast([...command.split(" "), ...flags]),
      /the file was executed/,
    );
  }
});

test("a wrong port or host is named, and the configuration file is not blamed", async () => {
  terminal.write({ "holdfast.config.mjs": configText(ECHO_JOB, '{ database: "sqlite:app.db" }') });
  const start = (...flags: string[]) => terminal.holdfast(["start", ...flags]);
  for (const [{ code, stdout, stderr }, message, exit] of [
    [await start("--port", "99999"), /^--port: must be a whole number from 0 to 65535\./, 2],
    [await start("--host", "a b"), /^--host: must be a name or an address[^\n]*\n$/, 3],
    [await start("--host", "0.0.0.0"), /^--host: "0\.0\.0\.0" can be reached from other mach/, 3],
    [
      await terminal.holdfast(["start"], { env: { HOLDFAST_PORT: "99999" } }),
      /^HOLDFAST_PORT: must be a whole number/,
      3,
    ],
  ] as const) {
    expect({ code, stdout }).toEqual({ code: exit, stdout: "" });
    expect(stderr).toMatch(message);
    expect(stderr).not.toContain("could not be loaded");
  }
});

test("a port that another process has is refused before the instance starts", async () => {
  terminal.write({ "holdfast.config.mjs": configText(ECHO_JOB, '{ database: "sqlite:app.db" }') });
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  const { port } = other.address() as AddressInfo;
  const ended = await terminal.holdfast(["start", "--port", String(port)]);
  other.close();
  // Standard output, where the line "instance started" would be, is empty.
  expectRefusal(
    ended,
    new RegExp(`^Port ${port} of 127\\.0\\.0\\.1 is in use by another process\\.`),
  );
  expect(existsSync(path.join(terminal.folder, "app.db"))).toBe(false);
});
