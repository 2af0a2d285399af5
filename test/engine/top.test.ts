// What one look of `top` asks of the database: the same few questions, however much there is.

import picocolors from "picocolors";
import { expect, test } from "vitest";
import { endedEachMinute, lookAtAll, topPage } from "../../src/cli/top/page.js";
import { Holdfast } from "../../src/holdfast.js";
import { storeFor } from "../../src/store/open.js";

const QUESTIONS = 7;

test("a look asks a fixed number of questions, and its page fits the rows there are", async () => {
  const asked: string[] = [];
  const holdfast = new Holdfast(
    { database: "sqlite::memory:", logger: { debug() {}, info() {}, warn() {}, error() {} } },
    {
      store: (config, ports) =>
        new Proxy(storeFor({ ...config, ...ports, mayCreate: true }), {
          get(target, name) {
            const value = Reflect.get(target, name, target);
            if (typeof value !== "function") return value;
            return (...args: unknown[]) => {
              asked.push(String(name));
              return value.apply(target, args);
            };
          },
        }),
    },
  );
  const echo = holdfast.job("echo", { run: (input) => input });
  const questions = async (): Promise<string[]> => {
    asked.length = 0;
    await lookAtAll(holdfast, 0);
    return asked.filter((name) => name !== "open");
  };
  expect(await questions()).toHaveLength(QUESTIONS);
  for (let at = 0; at < 200; at += 1) {
    await echo.enqueue({ at }, { queue: `queue-${at % 40}` });
    await holdfast.schedules.upsert(`s-${at}`, { job: "echo", cron: `${at % 60} * * * *` });
  }
  expect(await questions()).toHaveLength(QUESTIONS);
  const look = await lookAtAll(holdfast, Date.UTC(2026, 0, 1));
  const page = topPage(look, {
    colours: picocolors.createColors(false),
    rows: 40,
    note: "q leaves",
    eachMinute: 3.25,
  });
  expect(page.split("\n").length).toBeLessThanOrEqual(40);
  expect(page).toMatch(
    /0 instances; 0 running, 200 ready, 0 waiting; lately 0 completed, 0 failed; 3\.3 end each minute|3\.2 end/,
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
