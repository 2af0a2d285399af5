// `check`, `repair`, `recover` and `health` through the program, and the script of `check --sql` through
// the databases' own programs where they are there.

import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Holdfast } from "../../src/index.js";
import { CHECKS } from "../../src/store/checks/check-statements.js";
import { configText, openTerminal, type Terminal } from "./terminal.js";

const POSTGRES_URL = process.env.HOLDFAST_TEST_POSTGRES_URL;

let terminal: Terminal;
let file: string;
beforeAll(async () => {
  terminal = openTerminal();
  file = path.join(terminal.folder, "app.db");
  const checks =
    '{ "no job is called lost": "select name from holdfast_job where name = \'lost\';" }';
  terminal.write({
    "holdfast.config.mjs": configText("", `{ database: "sqlite:app.db", checks: ${checks} }`),
  });
  const holdfast = new Holdfast({ database: `sqlite:${file}` });
  const study = holdfast.job("study", { run: () => "done" });
  holdfast.schedule("hourly", study, { cron: "0 * * * *" });
  const { id } = await study.enqueue({});
  await study.enqueue({}, { delay: "1d" });
  await holdfast.start();
  await holdfast.runs.wait(id);
  await holdfast.stop();
});
afterAll(() => terminal.close());

function sql(text: string): void {
  const database = new DatabaseSync(file);
  database.exec(text);
  database.close();
}

const BREAK = "update holdfast_waiting set attempt = 99";
const MEND = "update holdfast_waiting set attempt = 0";

test("a healthy database is well: exit code 0", async () => {
  const { code, stdout } = await terminal.holdfast(["check"]);
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: `All ${CHECKS.length + 1} checks passed.\n`,
  });
  const asked = await terminal.holdfast(["check", "--json", "--timeout", "5m"]);
  const report = JSON.parse(asked.stdout);
  expect(report.ok).toBe(true);
  expect(report.checks.at(-1)).toMatchObject({ name: "no job is called lost", ok: true });
});

test("broken promises are shown with their ids, and repaired once by --apply: exit code 1 until then", async () => {
  sql(BREAK);
  const found = await terminal.holdfast(["check"]);
  expect(found.code).toBe(1);
  expect(found.stdout).toMatch(
    /1 broken {2}attempts stay within their limit \(S10\)\n {2}[0-9a-f-]{36}, attempt 99/,
  );
  const planned = await terminal.holdfast(["repair"]);
  expect(planned).toMatchObject({ code: 1 });
  expect(planned.stdout).toMatch(
    /would be repaired: pending runs get one more attempt.*add --apply/s,
  );
  expect(await terminal.holdfast(["check"])).toMatchObject({ code: 1 });
  const applied = await terminal.holdfast(["repair", "--apply"]);
  expect(applied.stdout).toMatch(/repaired \(1 rows\).*All checks pass now\./s);
  expect(applied.code).toBe(0);
  const again = await terminal.holdfast(["repair", "--apply", "--json"]);
  expect(JSON.parse(again.stdout)).toEqual({ ok: true, applied: true, steps: [], broken: [] });
});

test("a check of the user's own is reported like the others, and one that cannot be asked says why", async () => {
  sql(
    "insert into holdfast_job (name, queue, priority, version, policy, announced_at) select 'lost', queue, priority, version, policy, 0 from holdfast_job",
  );
  const found = await terminal.holdfast(["check"]);
  expect(found).toMatchObject({ code: 1 });
  expect(found.stdout).toMatch(/1 broken {2}no job is called lost\n {2}name lost/);
  const planned = await terminal.holdfast(["repair", "--apply"]);
  expect(planned).toMatchObject({ code: 1, stdout: expect.stringMatching(/by hand/) });
  sql("delete from holdfast_job where name = 'lost'");
  terminal.write({
    "wrong.mjs": configText(
      "",
      '{ database: "sqlite:app.db", checks: { "it is": "select nonsense" } }',
    ),
    "writes.mjs": configText(
      "",
      '{ database: "sqlite:app.db", checks: { "it is": "delete from holdfast_job" } }',
    ),
  });
  const wrong = await terminal.holdfast(["check", "--config", "wrong.mjs"]);
  expect(wrong).toMatchObject({ code: 3 });
  expect(wrong.stdout).toMatch(/could not run {2}it is: .*nonsense/);
  const writes = await terminal.holdfast(["check", "--config", "writes.mjs"]);
  expect(writes.code).toBe(3);
  expect(writes.stderr).toMatch(/checks\["it is"\]: must be one "select …"/);
});

test("a check that has no time says so: exit code 3", async () => {
  const { code, stdout } = await terminal.holdfast(["check", "--timeout", "1ms"]);
  expect(stdout).toMatch(/not finished in time/);
  expect(code).toBe(3);
});

test("the script runs in sqlite3 as it is printed, and in the library", async () => {
  const printed = await terminal.holdfast(["check", "--sql"]);
  expect(printed.code).toBe(0);
  const asked = await terminal.holdfast(["check", "--sql", "--json"]);
  expect(JSON.parse(asked.stdout).sql.trim()).toBe(printed.stdout.trim());
  const [, select = ""] = printed.stdout.split(/^begin;$/m);
  const database = new DatabaseSync(file);
  const rows = database.prepare(select.slice(0, select.lastIndexOf("rollback"))).all();
  database.close();
  expect(rows).toHaveLength(CHECKS.length + 1);
  expect(rows.every((row) => (row as { violations: number }).violations === 0)).toBe(true);
  const script = path.join(terminal.folder, "check.sql");
  writeFileSync(script, printed.stdout);
  sql(BREAK);
  const ran = spawnSync("sqlite3", [file], { input: printed.stdout, encoding: "utf8" });
  sql(MEND);
  if (ran.error) return;
  expect({ status: ran.status, stderr: ran.stderr }).toEqual({ status: 0, stderr: "" });
  expect(ran.stdout).toMatch(/^attempts stay within their limit\|S10\|1\|[0-9a-f-]{36}\n/);
  expect(ran.stdout.split("\n").filter((line) => line.endsWith("|0|"))).toHaveLength(CHECKS.length);
});

describe.runIf(POSTGRES_URL)("on PostgreSQL", () => {
  test("the script runs in psql as it is printed", async () => {
    const client = new pg.Client(POSTGRES_URL);
    await client.connect();
    await client.query('drop database if exists "check_script"');
    await client.query('create database "check_script"');
    await client.end();
    const url = (POSTGRES_URL as string).replace(/\/[^/]*$/, "/check_script");
    const holdfast = new Holdfast({ database: url });
    await holdfast.check();
    await holdfast.stop();
    const printed = await terminal.holdfast([
      "check",
      "--sql",
      "--database",
      url,
      "--config",
      "none.mjs",
    ]);
    const bare =
      printed.code === 0 ? printed : await terminal.holdfast(["check", "--sql", "--database", url]);
    const script = bare.stdout.replaceAll(
      /^union all\nselect 'no job is called lost'.*?as evidence\n/gms,
      "",
    );
    const own = new pg.Client(url);
    await own.connect();
    const answers = (await own.query(script)) as unknown as { rows: { violations: string }[] }[];
    await own.end();
    expect(answers[1]?.rows).toHaveLength(CHECKS.length);
    expect(answers[1]?.rows.every(({ violations }) => Number(violations) === 0)).toBe(true);
    const ran = spawnSync("psql", ["-X", "-v", "ON_ERROR_STOP=1", "-At", url], {
      input: script,
      encoding: "utf8",
    });
    if (!ran.error) {
      expect({ status: ran.status, stderr: ran.stderr }).toEqual({ status: 0, stderr: "" });
      expect(ran.stdout.split("\n").filter((line) => line.endsWith("|0|"))).toHaveLength(
        CHECKS.length,
      );
    }
  });
});

test("recover prints its plan first, and with --yes raises the fences and ends the leases of former holders", async () => {
  sql(`update holdfast_schedule set next_at = next_at - 86400000, cursor_at = cursor_at - 90000000;
    insert into holdfast_lease (until, deadline_at, claimed_at, renewed_at, holder, lane, policy, attempt, losses, refunds,
      laters, extra, suspect, token, ids, started)
    select 4102444800000, 4102444800000, 0, 0, 1, lane, policy, 1, 0, 0, 0, 0, 0, 'x', json_array(id), '[]'
    from holdfast_waiting limit 1;
    delete from holdfast_waiting`);
  const told = await terminal.holdfast(["recover"]);
  expect(told).toMatchObject({ code: 0 });
  expect(told.stdout).toMatch(/leases +1 of dead holders, with 1 runs/);
  expect(told.stdout).toMatch(/hourly +study .* 1 +\d+/);
  expect(told.stdout).toMatch(/add --yes/);
  const fence = () => {
    const database = new DatabaseSync(file);
    const row = database
      .prepare("select seq from sqlite_sequence where name = 'holdfast_lease'")
      .get();
    database.close();
    return Number((row as { seq: number }).seq);
  };
  const before = fence();
  expect(before).toBeLessThan(100);
  const done = await terminal.holdfast(["recover", "--yes", "--json"]);
  expect(JSON.parse(done.stdout)).toMatchObject({
    applied: true,
    leases: 1,
    runs: 1,
    schedules: [{ schedule: "hourly", fires: [expect.any(String)] }],
    jobs: [{ job: "study", ready: 0, waiting: 0, held: 1 }],
  });
  expect(fence()).toBeGreaterThan(9_999_999_999);
  const after = await terminal.holdfast(["recover", "--json"]);
  expect(JSON.parse(after.stdout)).toMatchObject({ leases: 0, jobs: [{ job: "study", held: 0 }] });
});

test("recover says that everything is paused, and how many deliveries of alerts are still to be sent", async () => {
  const alert = "0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55";
  sql(`insert into holdfast_alert (id, kind, subject_type, subject, severity, message, evidence, first_at, last_at)
      values ('${alert}', 'stale', 'job', 'study', 'critical', 'x', '{}', 0, 0);
    insert into holdfast_alert_delivery (alert, event, destination, state, attempts, next_at, tried_at)
      values ('${alert}', 'opened', 'desk', 'pending', 0, 0, 0), ('${alert}', 'opened', 'mail', 'sent', 1, 0, 0)`);
  await terminal.holdfast(["pause", "--all", "--note", "restoring"]);
  const told = await terminal.holdfast(["recover"]);
  expect(told.stdout).toMatch(/^Everything is paused since .* \(restoring\): nothing fires/);
  expect(told.stdout).toMatch(/alerts +1 pending deliveries will be sent/);
  const asked = await terminal.holdfast(["recover", "--json"]);
  expect(JSON.parse(asked.stdout)).toMatchObject({
    deliveries: 1,
    pausedAll: { note: "restoring" },
  });
  await terminal.holdfast(["resume", "--all"]);
  sql("delete from holdfast_alert_delivery; delete from holdfast_alert");
});

test("recover refuses while an instance is there, unless forced", async () => {
  sql(
    "update holdfast_instance set retired_at = null, seen_at = cast(unixepoch('subsec') * 1000 as integer)",
  );
  const refused = await terminal.holdfast(["recover", "--yes"]);
  expect(refused).toMatchObject({ code: 3 });
  expect(refused.stderr).toMatch(/1 instances were seen.*--force/);
  expect(await terminal.holdfast(["recover", "--yes", "--force"])).toMatchObject({ code: 0 });
});

test("health compares with thresholds: exit code 1 if one is not met", async () => {
  sql(`update holdfast_instance set polled_at = cast(unixepoch('subsec') * 1000 as integer), retired_at = null;
    update holdfast_schedule set next_at = 4102444800000`);
  const well = await terminal.holdfast(["health", "--check"]);
  expect(well.stdout).toMatch(/ok +success rate +100 % +above 80 % over 1 d/);
  expect(well.code).toBe(0);
  sql(
    `insert into holdfast_rollup select hour_at, lane, mode, 2, 0, 3, 0 from holdfast_rollup where status = 1`,
  );
  const not = await terminal.holdfast(["health", "--json"]);
  expect(not.code).toBe(1);
  expect(JSON.parse(not.stdout).figures[0]).toEqual({
    name: "success rate",
    ok: false,
    found: "25 %",
    wanted: "above 80 % over 1 d",
  });
  expect(await terminal.holdfast(["health", "--success-rate", "20%"])).toMatchObject({ code: 0 });
  sql("update holdfast_instance set polled_at = polled_at - 600000");
  const late = await terminal.holdfast(["health", "--success-rate", "0.2"]);
  expect(late).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/failed +scheduler +polled 10 min/),
  });
  expect(
    await terminal.holdfast(["health", "--success-rate", "0.2", "--polled", "1h"]),
  ).toMatchObject({ code: 0 });
});

test("a wrong call is refused with an example", async () => {
  const wrong = await terminal.holdfast(["health", "--success-rate", "often"]);
  expect(wrong).toMatchObject({ code: 2, stderr: expect.stringMatching(/such as 80% or 0\.8/) });
  expect(await terminal.holdfast(["check", "--timeout", "soon"])).toMatchObject({ code: 2 });
  expect(await terminal.holdfast(["repair", "--aply"])).toMatchObject({ code: 2 });
  expect(await terminal.holdfast(["recover", "--now"])).toMatchObject({ code: 2 });
});
