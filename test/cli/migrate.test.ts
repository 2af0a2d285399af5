// `migrate` on both databases: the plan touches nothing, the deed is done once.

import { existsSync } from "node:fs";
import path from "node:path";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { configText, ECHO_JOB, openTerminal, type Terminal } from "./terminal.js";

const POSTGRES_URL = process.env.HOLDFAST_TEST_POSTGRES_URL;

let terminal: Terminal;
beforeEach(() => {
  terminal = openTerminal();
});
afterEach(() => terminal.close());

describe("on SQLite", () => {
  const place = ["--database", "sqlite:app.db"];

  test("the plan makes nothing", async () => {
    const { code, stdout } = await terminal.holdfast(["migrate", "--plan", ...place]);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^To do: create the database file, create the tables \(sqlite:.*app\.db\)\.\n$/,
    );
    expect(existsSync(path.join(terminal.folder, "app.db"))).toBe(false);
  });

  test("the deed leaves nothing to do, and may be repeated", async () => {
    const file = path.join(terminal.folder, "app.db");
    const done = await terminal.holdfast(["migrate", "--json", ...place]);
    expect(JSON.parse(done.stdout)).toEqual({ database: `sqlite:${file}`, steps: [] });
    const again = await terminal.holdfast(["migrate", ...place]);
    expect(again).toMatchObject({ code: 0, stdout: `Up to date: sqlite:${file}\n` });
    const plan = await terminal.holdfast(["migrate", "--plan", ...place]);
    expect(plan.stdout).toMatch(/^Nothing to do/);
  });

  test('code that says migrate: "check" waits for the command', async () => {
    const options = '{ database: "sqlite:app.db", migrate: "check" }';
    terminal.write({ "holdfast.config.mjs": configText(ECHO_JOB, options) });
    const refused = await terminal.holdfast(["start"]);
    expect(refused).toMatchObject({ code: 3 });
    expect(refused.stderr).toMatch(/a SQLite file that does not exist/);
    terminal.write({ "app.db": "" });
    const empty = await terminal.holdfast(["start"]);
    expect(empty.stderr).toMatch(/no Holdfast tables; run `holdfast migrate`/);
    expect(await terminal.holdfast(["migrate"])).toMatchObject({ code: 0 });
    const session = terminal.begin(["start"]);
    await session.line(/instance started/);
  });
});

test("on SQLite there are no SQL functions to expose, and that is said", async () => {
  const refused = await terminal.holdfast([
    ...["migrate", "--expose", "public", "--database", "sqlite:app.db"],
  ]);
  expect(refused.code).not.toBe(0);
  expect(refused.stderr).toMatch(/must be left out on SQLite, which has no SQL functions/);
});

describe.runIf(POSTGRES_URL)("on PostgreSQL", () => {
  let name: string;
  let place: string[];
  beforeEach(async () => {
    name = `cli_${crypto.randomUUID().replaceAll("-", "_")}`;
    await sql(`create database ${name}`);
    const url = new URL(POSTGRES_URL as string);
    url.pathname = `/${name}`;
    place = ["--database", url.href];
  });
  afterEach(() => sql(`drop database ${name} with (force)`));

  test("commands that look make no tables, migrate does, enqueue then works", async () => {
    const looked = await terminal.holdfast(["runs", "list", ...place]);
    expect(looked).toMatchObject({ code: 3, stdout: "" });
    expect(looked.stderr).toMatch(
      /schema "holdfast" has no Holdfast tables; run `holdfast migrate`/,
    );
    const steps = async (...flags: string[]) =>
      JSON.parse((await terminal.holdfast(["migrate", "--json", ...flags, ...place])).stdout).steps;
    expect(await steps("--plan")).toEqual(["create the tables"]);
    expect(await steps("--plan")).toEqual(["create the tables"]);
    expect(await steps()).toEqual([]);
    expect(await steps("--plan")).toEqual([]);
    const exposing = "create the SQL functions in the schema public";
    expect(await steps("--plan", "--expose", "public")).toEqual([exposing]);
    const exposed = await terminal.holdfast(["migrate", "--expose", "public", ...place]);
    expect(exposed.stdout).toMatch(/granted to nobody yet: public\.holdfast_acquire_due, public\./);
    terminal.write({ "holdfast.config.mjs": configText(ECHO_JOB) });
    const session = terminal.begin(["start", ...place]);
    await session.line(/instance started/);
    const waited = await terminal.holdfast([
      "enqueue",
      "echo",
      "[1]",
      "--wait",
      "--json",
      ...place,
    ]);
    expect(JSON.parse(waited.stdout).run).toMatchObject({
      status: "completed",
      result: { echoed: [1] },
    });
  });
});

async function sql(text: string): Promise<void> {
  const client = new pg.Client(POSTGRES_URL);
  await client.connect();
  try {
    await client.query(text);
  } finally {
    await client.end();
  }
}
