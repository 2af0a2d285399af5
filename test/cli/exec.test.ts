// Tests `exec`: a program as a run. Its output passes through, its exit code is returned, and its end is stored; it is
// ended at its time limit, by a cancel, and when its lease is lost.

import { existsSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import path from "node:path";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../support/until.js";
import { openTerminal, type Session, type Terminal } from "./terminal.js";

const POSTGRES_URL = process.env.HOLDFAST_TEST_POSTGRES_URL;

let terminal: Terminal;
beforeAll(() => {
  terminal = openTerminal();
});
afterAll(() => terminal.close());

const place = ["--database", "sqlite:app.db"];
const exec = (name: string, flags: readonly string[], ...command: string[]) =>
  terminal.holdfast(["exec", name, ...place, ...flags, "--", ...command]);
const begin = (name: string, flags: readonly string[], ...command: string[]) =>
  terminal.begin(["exec", name, ...place, ...flags, "--", ...command]);
const sh = (script: string) => ["sh", "-c", script];

async function runsOf(job: string, from = place) {
  const { stdout } = await terminal.holdfast(["runs", "list", "--job", job, "--json", ...from]);
  return JSON.parse(stdout).runs;
}

async function linesOf(id: string) {
  const { stdout } = await terminal.holdfast(["runs", "logs", id, "--json", ...place]);
  return JSON.parse(stdout).lines.map((line: { message: string }) => line.message);
}

test("output passes through, and output, exit code and duration are kept", async () => {
  const ended = await exec("greet", [], ...sh("echo hello; echo careful >&2; printf last"));
  expect(ended).toEqual({ code: 0, stdout: "hello\nlast", stderr: "careful\n" });
  const [run] = await runsOf("greet");
  expect(run).toMatchObject({
    status: "completed",
    mode: "enqueued",
    result: { exitCode: 0, durationMs: expect.any(Number) },
    input: { command: ["sh", "-c", expect.stringContaining("hello")], host: expect.any(String) },
  });
  expect((await linesOf(run.id)).sort()).toEqual(["careful", "hello", "last"]);
});

test("a program that fails is a failed run, and its exit code is ours", async () => {
  const ended = await exec("break", [], ...sh("echo 'disk full' >&2; exit 7"));
  expect(ended).toEqual({ code: 7, stdout: "", stderr: "disk full\n" });
  const [run] = await runsOf("break");
  expect(run).toMatchObject({ status: "failed", attempt: 1, error: { code: "EXIT_7" } });
  expect(run.error.message).toBe("It ended with exit code 7.\ndisk full");
});

test("a program that does not exist ends as in a shell", async () => {
  const { code, stderr } = await exec("typo", [], "no-such-program");
  expect(code).toBe(127);
  expect(stderr).toMatch(/^no-such-program could not be started: there is no such program\. Run /);
  expect(await runsOf("typo")).toMatchObject([
    { status: "failed", error: { code: "NOT_STARTED" } },
  ]);
});

test("with --json there is one document, and the program's output is beside it", async () => {
  const { code, stdout, stderr } = await exec("json", ["--json"], "echo", "--json");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "--json\n" });
  expect(JSON.parse(stdout)).toMatchObject({ name: "json", exitCode: 0, endedBy: "itself" });
});

test("arguments after -- belong to the program", async () => {
  expect(await exec("plain", [], "echo", "--json", "--lock")).toMatchObject({
    code: 0,
    stdout: "--json --lock\n",
  });
});

/** Says that it is there, and ends when the file is made. */
const untilFile = (file: string) => sh(`echo here; while [ ! -e ${file} ]; do sleep 0.05; done`);

test("with --lock it does not run twice at once, and prints the holder", async () => {
  const first = begin("single", ["--lock"], ...untilFile("go-1"));
  await first.line(/^here$/);
  const second = await exec("single", ["--lock"], "echo", "second");
  expect(second).toMatchObject({ code: 1, stdout: "" });
  expect(second.stderr).toMatch(
    /^Not started: single runs already \(held by \S+:\d+:[0-9a-f-]{36}, its lease until /,
  );
  const quiet = await exec("single", ["--lock", "--locked-exit", "0", "--json"], "echo", "third");
  expect(quiet.code).toBe(0);
  expect(JSON.parse(quiet.stdout)).toMatchObject({ skipped: true, reason: "locked" });
  const waiting = begin("single", ["--lock", "--wait", "30s"], "echo", "fourth");
  terminal.write({ "go-1": "" });
  expect(await first.ended).toMatchObject({ code: 0 });
  expect(await waiting.ended).toMatchObject({ code: 0, stdout: "fourth\n" });
  expect(await runsOf("single")).toHaveLength(2);
});

test("without it two run side by side, each as its own run", async () => {
  const sessions = ["a", "b"].map((name) =>
    begin("both", [], ...sh(`echo ${name}; while [ ! -e go-2 ]; do sleep 0.05; done; exit 0`)),
  );
  await Promise.all(sessions.map((session) => session.line(/^[ab]$/)));
  terminal.write({ "go-2": "" });
  for (const session of sessions) expect(await session.ended).toMatchObject({ code: 0 });
  const runs = await runsOf("both");
  for (const run of runs) {
    const [, , script] = run.input.command;
    expect(await linesOf(run.id)).toEqual([/echo (.)/.exec(script)?.[1]]);
  }
  expect(runs).toHaveLength(2);
});

test("when its time is over the program is ended with all that it started", async () => {
  const { code, stderr } = await exec(
    "slow",
    ["--timeout", "500ms"],
    ...sh("sh -c 'sleep 60; echo never > survived' & sleep 60"),
  );
  expect(code).toBe(124);
  expect(stderr).toMatch(/The program was ended: it took longer than 500 ms\./);
  expect(await runsOf("slow")).toMatchObject([{ status: "failed", error: { code: "TIMEOUT" } }]);
  expect(existsSync(path.join(terminal.folder, "survived"))).toBe(false);
});

const TIDY = sh('trap "echo tidy; exit 9" TERM; echo here; while :; do sleep 0.05; done');

test("a signal is passed on, and the program decides what it means", async () => {
  const session = begin("told", [], ...TIDY);
  await session.line(/^here$/);
  session.child.kill("SIGTERM");
  expect(await session.ended).toMatchObject({ code: 9, stdout: "here\ntidy\n" });
  expect(await runsOf("told")).toMatchObject([{ status: "failed", error: { code: "EXIT_9" } }]);
});

test("a run that is cancelled ends its program", async () => {
  const session = begin("unwanted", [], ...TIDY);
  await session.line(/^here$/);
  const [run] = await runsOf("unwanted");
  await terminal.holdfast(["runs", "cancel", run.id, ...place]);
  const { code, stdout, stderr } = await session.ended;
  expect({ code, stdout }).toEqual({ code: 9, stdout: "here\ntidy\n" });
  expect(stderr).toMatch(/^The program was ended: its run was cancelled\./m);
  expect(await runsOf("unwanted")).toMatchObject([{ status: "cancelled" }]);
});

test("a program whose lock is taken away is ended", async () => {
  const session = begin("revoked", ["--lock", "--lease", "3s"], ...TIDY);
  await session.line(/^here$/);
  const args = ["locks", "release", "exec:revoked", "--json", ...place];
  expect(await terminal.holdfast(args)).toMatchObject({ code: 0 });
  const { code, stderr } = await session.ended;
  expect(code).toBe(3);
  expect(stderr).toMatch(/The program was ended: its lease was lost/);
});

test("a database that cannot be reached starts nothing, unless it is to be run anyway", async () => {
  const far = ["--database", "postgres://app:hunter2@127.0.0.1:1/app"];
  const refused = await terminal.holdfast(["exec", "x", ...far, "--", "touch", "started"]);
  expect(refused).toMatchObject({ code: 3, stdout: "" });
  expect(refused.stderr).toMatch(/^The program was not started; --anyway starts it/);
  expect(existsSync(path.join(terminal.folder, "started"))).toBe(false);
  const anyway = await terminal.holdfast([
    "exec",
    "x",
    ...far,
    "--anyway",
    "--",
    ...sh("echo on; exit 4"),
  ]);
  expect(anyway).toMatchObject({ code: 4, stdout: "on\n" });
  expect(anyway.stderr).toMatch(/could not be reached.*The program is run without being kept/s);
});

test("no database is created in a folder without a configuration", async () => {
  const other = openTerminal();
  const { code, stderr } = await other.holdfast(["exec", "x", "--", "touch", "started"]);
  expect(code).toBe(3);
  expect(stderr).toMatch(/holdfast\.db could not be reached/);
  expect(existsSync(path.join(other.folder, ".holdfast"))).toBe(false);
  await other.close();
});

test("while everything is paused nothing is started", async () => {
  const other = ["--database", "sqlite:paused.db"];
  await terminal.holdfast(["migrate", ...other]);
  await terminal.holdfast(["pause", "--all", "--note", "moving", ...other]);
  const { code, stdout, stderr } = await terminal.holdfast([
    "exec",
    "x",
    ...other,
    "--",
    "echo",
    "on",
  ]);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toMatch(/^Not started: everything is paused .*moving.* holdfast resume --all/);
});

test("the name of a job in the configuration file is not taken for a program", async () => {
  const other = openTerminal();
  other.write({
    "holdfast.config.mjs": `import { Holdfast } from "holdfast";
const holdfast = new Holdfast({ database: "sqlite:app.db" });
holdfast.job("backup", { run: () => 1 });
export default holdfast;`,
  });
  const { code, stderr } = await other.holdfast(["exec", "backup", "--", "true"]);
  expect({ code }).toEqual({ code: 2 });
  expect(stderr).toMatch(/backup is the name of a job in the configuration file/);
  await other.close();
});

describe.runIf(POSTGRES_URL)("on PostgreSQL", () => {
  test("a connection that is lost in the middle is no harm", async () => {
    const line = await cuttableLine();
    const far = ["--database", line.url];
    const made = await terminal.holdfast(["migrate", ...far]);
    expect(made.code).toBe(0);
    const session: Session = terminal.begin(["exec", "steady", ...far, "--", ...untilFile("go-3")]);
    await session.line(/^here$/);
    line.cut();
    // Another connection was made since: the instance goes on.
    await until("it is connected again", () => line.open() > 0);
    terminal.write({ "go-3": "" });
    expect(await session.ended).toMatchObject({ code: 0, stdout: "here\n" });
    expect(await runsOf("steady", far)).toMatchObject([{ status: "completed" }]);
    await line.close();
  });
});

async function sql(text: string): Promise<void> {
  const client = new pg.Client({ connectionString: POSTGRES_URL });
  await client.connect();
  await client.query(text);
  await client.end();
}

/** A database of its own behind a line that can be cut. */
async function cuttableLine() {
  const target = new URL(POSTGRES_URL ?? "");
  const name = `exec_${process.pid}`;
  await sql(`create database ${name}`);
  const sockets = new Set<Socket>();
  const server: Server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.pipe(to);
      from.on("error", () => to.destroy());
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  const url = new URL(target);
  url.hostname = "127.0.0.1";
  url.port = String(port);
  url.pathname = name;
  return {
    url: url.href,
    open: () => sockets.size,
    cut: () => {
      for (const socket of [...sockets]) socket.destroy();
      sockets.clear();
    },
    async close() {
      server.close();
      await sql(`drop database ${name} with (force)`);
    },
  };
}
