// Tests schedules declared in code: the changes that `plan` prints, and those that `apply` makes.

import { afterEach, beforeEach, expect, test } from "vitest";
import { configText, openTerminal, type Terminal } from "./terminal.js";

let terminal: Terminal;
beforeEach(async () => {
  terminal = openTerminal();
  declare();
  expect(await terminal.holdfast(["migrate"])).toMatchObject({ code: 0 });
});
afterEach(() => terminal.close());

function declare(schedules = "", options = '{ database: "sqlite:app.db", app: "shop" }'): void {
  const job = 'const report = holdfast.job("report", {});';
  terminal.write({ "holdfast.config.mjs": configText(`${job}\n${schedules}`, options) });
}

async function json(...args: string[]) {
  const { code, stdout, stderr } = await terminal.holdfast([...args, "--json"]);
  return { code, stderr, document: JSON.parse(stdout) };
}

const NIGHTLY = `holdfast.schedule("nightly", report, { cron: "0 2 * * *" });`;

test("a new schedule is planned, applied, and then nothing is left to do", async () => {
  declare(NIGHTLY);
  const planned = await terminal.holdfast(["schedules", "plan"]);
  expect(planned).toMatchObject({ code: 1, stderr: "" });
  expect(planned.stdout).toMatch(
    /^nightly {2}would be created\n( {2}\+ \d{4}-\d\d-\d\d 02:00:00Z\n){5}1 schedule would change\.\n$/,
  );
  expect((await terminal.holdfast(["schedules", "list"])).stdout).toBe("No schedules.\n");
  const applied = await terminal.holdfast(["schedules", "apply"]);
  expect(applied).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(
      /schedule=nightly, warning=After downtime, the most recent missed tick .* up to 1 d late/,
    ),
  });
  expect(applied.stdout).toMatch(/^nightly {2}created\n[\s\S]*\n1 schedule changed\.\n$/);
  expect(await terminal.holdfast(["schedules", "plan"])).toMatchObject({
    code: 0,
    stdout: "nightly  unchanged\nNothing would change.\n",
  });
  expect(await json("schedules", "apply")).toMatchObject({
    code: 0,
    document: { changes: [{ schedule: "nightly", change: "unchanged", isEffective: false }] },
  });
});

test("a change shows which ticks move", async () => {
  declare(NIGHTLY);
  await terminal.holdfast(["schedules", "apply"]);
  declare(NIGHTLY.replace("0 2 * * *", "0 2,3 * * *"));
  const { code, stdout } = await terminal.holdfast(["schedules", "plan"]);
  expect(code).toBe(1);
  expect(stdout).toMatch(/^nightly {2}would be changed\n/);
  expect(stdout).toMatch(/^ {2}- \d{4}-\d\d-\d\d 02:00:00Z$/m);
  expect(stdout).toMatch(/^ {2}\+ \d{4}-\d\d-\d\d 03:00:00Z$/m);
  const { document } = await json("schedules", "plan");
  expect(document.changes).toMatchObject([
    { schedule: "nightly", change: "edited", isEffective: true, ticksAfter: { length: 5 } },
  ]);
});

test("a schedule that a call made is left alone", async () => {
  const flags = ["--job", "report", "--every", "1h"];
  await terminal.holdfast(["schedules", "create", "nightly", ...flags]);
  declare(NIGHTLY);
  const { code, stdout } = await terminal.holdfast(["schedules", "plan"]);
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout:
      "nightly  unchanged: another app, or a call, made a schedule of this name\nNothing would change.\n",
  });
});

test("schedules that vanished from the code are paused once", async () => {
  declare(NIGHTLY);
  await terminal.holdfast(["schedules", "apply"]);
  declare();
  const planned = await terminal.holdfast(["schedules", "plan"]);
  expect(planned).toMatchObject({
    code: 1,
    stdout: "nightly  no longer declared: would be paused\n1 schedule would change.\n",
  });
  const applied = await terminal.holdfast(["schedules", "apply"]);
  expect(applied.stdout).toBe("nightly  no longer declared: paused\n1 schedule changed.\n");
  expect((await json("schedules", "show", "nightly")).document.status).toBe("paused");
  expect(await terminal.holdfast(["schedules", "plan"])).toMatchObject({
    code: 0,
    stdout: "nightly  no longer declared: unchanged\nNothing would change.\n",
  });
  // No start makes it again, so nothing is said about the code.
  const { stdout } = await terminal.holdfast(["schedules", "delete", "nightly"]);
  expect(stdout).toBe("Schedule nightly deleted.\n");
});

test("schedules that vanished from code without an app name are paused, as the package names the app", async () => {
  declare(NIGHTLY, '{ database: "sqlite:app.db" }');
  await terminal.holdfast(["schedules", "apply"]);
  declare("", '{ database: "sqlite:app.db" }');
  expect(await terminal.holdfast(["schedules", "plan"])).toMatchObject({
    code: 1,
    stdout: "nightly  no longer declared: would be paused\n1 schedule would change.\n",
  });
  const { stdout } = await terminal.holdfast(["schedules", "show", "nightly"]);
  expect(stdout).toMatch(/code of holdfast/);
});

test("a change by hand of what code declares says how long it stays", async () => {
  declare(NIGHTLY);
  await terminal.holdfast(["schedules", "apply"]);
  const args = ["schedules", "update", "nightly", "--priority", "5"];
  expect((await terminal.holdfast(args)).stdout).toMatch(
    /\nIt is declared in code of shop: this change lasts until the definition there changes\.\n$/,
  );
  expect(await terminal.holdfast(["schedules", "plan"])).toMatchObject({ code: 0 });
  expect((await terminal.holdfast(["schedules", "delete", "nightly"])).stdout).toMatch(
    /^Schedule nightly deleted\.\nIt is declared in code of shop: the next start there creates it again\./,
  );
  expect(await terminal.holdfast(["schedules", "plan"])).toMatchObject({ code: 1 });
});

test("the configuration file may be named", async () => {
  terminal.write({ "jobs/holdfast.config.mjs": configText('holdfast.job("x", {});', "{}") });
  const place = ["--database", "sqlite:app.db"];
  const named = ["schedules", "plan", "jobs/holdfast.config.mjs", ...place];
  expect(await terminal.holdfast(named)).toMatchObject({
    code: 0,
    stdout: "The code declares no schedules.\n",
  });
  const missing = await terminal.holdfast(["schedules", "apply", "none.mjs"]);
  expect(missing).toMatchObject({ code: 3, stdout: "" });
  expect(missing.stderr).toMatch(/There is no configuration file .*none\.mjs/);
});
