// Counts the reads of one page of `top`: the same few statements, however much there is.

import picocolors from "picocolors";
import { expect, test } from "vitest";
import { endedEachMinute, observeAll, topPage } from "../../src/cli/output/top.js";
import { Holdfast } from "../../src/holdfast.js";
import { storeFor } from "../../src/store/open.js";
import { wrapStore } from "../../src/testing/wrap-store.js";

const QUESTIONS = 7;

test("a look asks a fixed number of questions, and its page fits the rows there are", async () => {
  const asked: string[] = [];
  const holdfast = new Holdfast(
    { database: "sqlite::memory:", logger: { debug() {}, info() {}, warn() {}, error() {} } },
    {
      store: (config, ports) =>
        wrapStore(storeFor({ ...config, ...ports, mayCreate: true }), (verb, call) => {
          return (...args) => {
            asked.push(verb);
            return call(...args);
          };
        }),
    },
  );
  const echo = holdfast.job("echo", { run: (input) => input });
  const questions = async (): Promise<string[]> => {
    asked.length = 0;
    await observeAll(holdfast, 0);
    // The verbs of the store itself, such as open and wake, ask nothing.
    return asked.filter((verb) => verb.includes("."));
  };
  expect(await questions()).toHaveLength(QUESTIONS);
  for (let at = 0; at < 200; at += 1) {
    await echo.enqueue({ at }, { queue: `queue-${at % 40}` });
    await holdfast.schedules.upsert(`s-${at}`, { job: "echo", cron: `${at % 60} * * * *` });
  }
  // Schedules are read a hundred at a time, since each may be large: two hundred take two reads more.
  expect(await questions()).toHaveLength(QUESTIONS + 2);
  const look = await observeAll(holdfast, Date.UTC(2026, 0, 1));
  const page = topPage(look, {
    colours: picocolors.createColors(false),
    rows: 40,
    note: "q leaves",
    eachMinute: 3.25,
  });
  expect(page.split("\n").length).toBeLessThanOrEqual(40);
  expect(page).toMatch(
    /0 instances; 0 running, 200 ready, 0 waiting; recently 0 completed, 0 failed; 3\.[23] runs end per minute/,
  );
  expect(page).toMatch(/Queues {2}\d+ of 4\d/);
  expect(page).toMatch(/Next ticks {2}\d+ of 50/);
  await holdfast.stop();
});

test("the rate is what ended between two looks; an hour that passes gives none", () => {
  const at = (ms: number, total: number) => ({ at: new Date(ms), recent: { total } }) as never;
  expect(endedEachMinute(null, at(0, 5))).toBeNull();
  expect(endedEachMinute(at(0, 5), at(30_000, 11))).toBe(12);
  expect(endedEachMinute(at(0, 50), at(2_000, 3))).toBeNull();
});
