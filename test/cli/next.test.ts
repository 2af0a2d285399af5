// `holdfast next` through the program.

import { readdirSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTerminal, type Terminal } from "./terminal.js";

let terminal: Terminal;
beforeAll(() => {
  terminal = openTerminal();
});
afterAll(() => terminal.close());

const NEW_YORK = ["--tz", "America/New_York"];

test("the next ticks with local time, and a note where the clocks change", async () => {
  const { code, stdout, stderr } = await terminal.holdfast([
    ...["next", "30 2 * * *", ...NEW_YORK],
    ...["--from", "2026-03-07T00:00:00Z", "--count", "3"],
  ]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toBe(`at 02:30 every day, America/New_York
tick                      local time                      note
2026-03-07T07:30:00.000Z  Sat 2026-03-07 02:30:00 -05:00
2026-03-08T07:00:00.000Z  Sun 2026-03-08 03:00:00 -04:00  02:30 does not exist on 2026-03-08, when the clocks go forward from 02:00 to 03:00: one tick at 03:00
2026-03-09T06:30:00.000Z  Mon 2026-03-09 02:30:00 -04:00
`);
  expect(readdirSync(terminal.folder)).toEqual([]);
});

test("ticks that do not exist are noted too", async () => {
  const { stdout } = await terminal.holdfast([
    ...["next", "*/15 2 * * *", ...NEW_YORK],
    ...["--from", "2026-03-07T12:00:00Z", "--count", "1"],
  ]);
  expect(stdout).toMatch(
    /\nNote: 02:00, 02:15, 02:30, … do not exist on 2026-03-08, .*: no tick\.\n$/,
  );
});

test("the policy for clock changes can be chosen", async () => {
  const ticks = async (...flags: string[]) => {
    const { stdout } = await terminal.holdfast(["next", ...flags, ...NEW_YORK, "--json"]);
    return JSON.parse(stdout).ticks;
  };
  const spring = ["30 2 * * *", "--from", "2026-03-08T00:00:00Z", "--count", "1"];
  expect(await ticks(...spring, "--dst-gap", "skip")).toEqual(["2026-03-09T06:30:00.000Z"]);
  const autumn = ["30 1 * * *", "--from", "2026-11-01T00:00:00Z", "--count", "2"];
  expect(await ticks(...autumn, "--dst-overlap", "both")).toEqual([
    "2026-11-01T05:30:00.000Z",
    "2026-11-01T06:30:00.000Z",
  ]);
});

test("as JSON", async () => {
  const { code, stdout, stderr } = await terminal.holdfast([
    ...["next", "30 1 * * *", ...NEW_YORK, "--json"],
    ...["--from", "2026-10-31T12:00:00-04:00", "--count", "2"],
  ]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(JSON.parse(stdout)).toEqual({
    ticks: ["2026-11-01T05:30:00.000Z", "2026-11-02T06:30:00.000Z"],
    notes: [
      {
        at: "2026-11-01T06:00:00.000Z",
        tick: "2026-11-01T05:30:00.000Z",
        text: "01:30 comes twice on 2026-11-01, when the clocks go back from 02:00 to 01:00: one tick, at the first pass",
      },
    ],
  });
});

test("without options: ten ticks from now on, in UTC whatever the host's zone", async () => {
  const before = Date.now();
  const { stdout } = await terminal.holdfast(["next", "0 2 * * *", "--json"], {
    env: { TZ: "Asia/Tokyo" },
  });
  const { ticks, notes } = JSON.parse(stdout) as { ticks: string[]; notes: unknown[] };
  expect(notes).toEqual([]);
  expect(ticks).toHaveLength(10);
  expect(ticks.every((tick) => tick.endsWith("T02:00:00.000Z"))).toBe(true);
  expect(Date.parse(ticks[0] ?? "")).toBeGreaterThan(before);
});

test("no tick follows the last one", async () => {
  const args = ["next", "@yearly", "--from", "9999-06-01T00:00:00Z"];
  expect((await terminal.holdfast(args)).stdout).toMatch(/\nNo tick follows\.\n$/);
  expect((await terminal.holdfast([...args, "--json"])).stdout).toBe('{"ticks":[],"notes":[]}\n');
});

const MISTAKES: readonly [name: string, args: string[], message: RegExp][] = [
  ["nothing", [], /missing required argument 'cron'/],
  ["an empty expression", [""], /^<cron>: must be a cron expression such as "30 2 \* \* \*"/],
  ["four fields", ["* * * *"], /must have 5 fields .* but has 4/],
  ["unquoted fields", ["0", "2", "*"], /too many arguments/],
  ["a bad minute", ["61 * * * *"], /^<cron>: minute must be 0–59, got 61/],
  ["a date that never comes", ["0 0 31 2 *"], /^<cron>: never happens/],
  ["an endless expression", ["*".repeat(100_000)], /but has 100000 characters/],
  ["an unknown zone", ["@daily", "--tz", "Europe/Pari"], /^--tz: .*Did you mean "Europe\/Paris"\?/],
  ["an empty zone", ["@daily", "--tz", ""], /^--tz: .*but is an empty string/],
  [
    "a time without a zone",
    ["@daily", "--from", "2026-03-08T07:00:00"],
    /a time with its zone such as/,
  ],
  ["no ticks", ["@daily", "--count", "0"], /a whole number from 1 to 1000/],
];

test.for(MISTAKES)("%s is refused", async ([, args, message]) => {
  const { code, stdout, stderr } = await terminal.holdfast(["next", ...args]);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toMatch(message);
  expect(stderr.length).toBeLessThan(500);
});

test("with --json a refusal is JSON too", async () => {
  const { code, stderr } = await terminal.holdfast(["next", "", "--tz", "", "--json"]);
  expect(code).toBe(2);
  expect(JSON.parse(stderr)).toEqual({
    error: "usage",
    message: expect.stringMatching(/^<cron>: .*\n--tz: /),
  });
});
