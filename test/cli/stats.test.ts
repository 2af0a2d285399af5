// How runs ended and what failed, through the program.

import { afterAll, beforeAll, expect, test } from "vitest";
import { configText, openTerminal, type Terminal } from "./terminal.js";

let terminal: Terminal;
beforeAll(async () => {
  terminal = openTerminal();
  terminal.write({
    "holdfast.config.mjs": configText(
      `holdfast.job("study", { retry: { attempts: 1 }, run: (input) => {
         if (input.order) throw Object.assign(new Error("order " + input.order + " is gone"), { code: "GONE" });
       } });`,
    ),
  });
  expect(await terminal.holdfast(["migrate"])).toMatchObject({ code: 0 });
});
afterAll(() => terminal.close());

test("nothing has ended yet, and both say so", async () => {
  expect((await terminal.holdfast(["stats"])).stdout).toBe("No run has ended since 24h.\n");
  const errors = await terminal.holdfast(["stats", "--errors", "--since", "1h"]);
  expect(errors).toMatchObject({ code: 0, stdout: "No run has failed since 1h.\n" });
});

test("runs are counted by job and by time, and equal errors are one line, whatever the numbers in them", async () => {
  for (const input of ["{}", "{}", "{}", '{"order":7}', '{"order":8}'])
    await terminal.holdfast(["enqueue", "study", input]);
  await terminal.holdfast(["tick", "--limit", "10"]);
  const { stdout } = await terminal.holdfast(["stats"]);
  expect(stdout).toMatch(
    /^5 runs ended since 24h: 3 completed, 2 failed, 0 cancelled, success 60 %$/m,
  );
  expect(stdout).toMatch(/^study +3 +2 +0 +60 % +\d/m);
  const document = JSON.parse((await terminal.holdfast(["stats", "--json"])).stdout);
  expect(document).toMatchObject({
    by: "hour",
    overall: { total: 5, completed: 3, failed: 2, successRate: 0.6 },
    jobs: [{ job: "study", total: 5 }],
  });
  const errors = await terminal.holdfast(["stats", "--errors"]);
  expect(errors.stdout).toMatch(/^2 +study +GONE +order \d is gone/m);
  const report = JSON.parse((await terminal.holdfast(["stats", "--errors", "--json"])).stdout);
  expect(report).toMatchObject({ isCut: false, errors: [{ job: "study", code: "GONE", runs: 2 }] });
  expect(report.errors[0].fingerprint).toMatch(/^[\da-f]{12}$/);
});

test("a mistake is named, with what would be right", async () => {
  const since = await terminal.holdfast(["stats", "--since", "yesterday"]);
  expect(since.code).toBe(2);
  expect(since.stderr).toMatch(/since.*24h|An instant such as/s);
  const by = await terminal.holdfast(["stats", "--by", "week"]);
  expect(by).toMatchObject({ code: 2 });
  expect(by.stderr).toMatch(/hour, day/);
  const both = await terminal.holdfast(["stats", "--errors", "--job", "study"]);
  expect(both).toMatchObject({ code: 2 });
  expect(both.stderr).toMatch(/--errors takes --since alone/);
  const watched = await terminal.holdfast(["stats", "--json", "--watch", "5s"]);
  expect(watched.code).toBe(2);
});
