// A healthy database is reported as one, whatever is going on in it: several instances under load, with
// schedules, retries, limits, batches, items, locks, cancels and history that goes, checked over and over.

import { EventEmitter, once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { Holdfast } from "../../src/holdfast.js";
import { LeaseLostError } from "../../src/shared/errors.js";
import { POSTGRES_URL } from "./places.js";

/** A thousand takes minutes: asked for by HOLDFAST_TEST_CHECKS. */
const TIMES = Number(process.env.HOLDFAST_TEST_CHECKS ?? 10);
/** Each instance does a round in this time, or as soon as it can: a load, not a flood that nobody gets through. */
const PACE_MS = 200;
const PATIENCE_MS = 600_000 + TIMES * 3_000;
const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

type Options = ConstructorParameters<typeof Holdfast>[0];

/** One instance with something of everything to do. */
function member(options: Options) {
  const holdfast = new Holdfast({ ...options, poll: "50ms", logger: SILENT });
  let turn = 0;
  const shared = {
    retry: { attempts: 3, delay: 5, max: 20 },
    // A thousand checks look at about as much at the end as at the beginning.
    retention: { count: 300 },
  };
  const quick = holdfast.job<{ n: number }>("quick", { ...shared, run: ({ n }) => n });
  const flaky = holdfast.job("flaky", {
    ...shared,
    run: () => {
      turn += 1;
      if (turn % 3 !== 0) throw new Error("not now");
    },
  });
  const limited = holdfast.job<{ account: number }>("limited", {
    ...shared,
    concurrency: { limit: 2, key: "account" },
    rate: { limit: 20, per: "1s" },
    run: () => {
      turn += 1;
      if (turn % 4 === 0) throw new Error("try again");
    },
  });
  const after = holdfast.job("after", { ...shared, run: () => "done" });
  const parent = holdfast.job("parent", {
    ...shared,
    async run(_, ctx) {
      for (const key of ["a", "b"]) await ctx.item(key, () => key);
      await ctx.item("c", () => Promise.reject(new Error("never")), { onError: "record" });
      ctx.log.info("fans out");
      await ctx.enqueueBatch(
        [1, 2, 3].map((n) => ({ job: n === 3 ? flaky : quick, input: { n } })),
        { then: after },
      );
    },
  });
  holdfast.schedule("each-second", quick, { every: "1s", input: { n: 1 }, missed: "all" });
  holdfast.schedule("drawn", flaky, { every: "1s..2s", afterFailure: "1s" });
  holdfast.schedule("limited-too", limited, {
    every: "1s",
    overlap: "queue",
    input: { account: 1 },
  });
  holdfast.schedule("replacing", quick, { every: "1s", overlap: "replace", input: { n: 2 } });
  return { holdfast, quick, flaky, limited, parent };
}

/** On a busy machine a lease of a second may run out meanwhile. */
function lost(error: unknown): void {
  if (!(error instanceof LeaseLostError)) throw error;
}

async function load(
  members: readonly ReturnType<typeof member>[],
  { isOver, onWritten }: { readonly isOver: () => boolean; readonly onWritten: () => void },
) {
  const work = async ({ holdfast, quick, flaky, limited, parent }: ReturnType<typeof member>) => {
    for (let round = 0; !isOver(); round += 1) {
      const many = await quick.enqueueMany(Array.from({ length: 5 }, (_, n) => ({ n })));
      onWritten();
      const delayed = await quick.enqueue({ n: 0 }, { delay: "1h" });
      onWritten();
      await flaky.enqueue({}, { key: `k${round % 7}`, keyFor: "live" });
      await limited.enqueueMany([{ account: round % 3 }, { account: 1 }]);
      onWritten();
      const { id } = await parent.enqueue({});
      onWritten();
      await holdfast.runs.cancel(delayed.id);
      if (round % 3 === 0) await holdfast.runs.cancel(many[0]?.id ?? "");
      await holdfast
        .lock(`lock-${round % 2}`, { lease: "1s", wait: "1s" }, () => round)
        .catch(lost);
      onWritten();
      await holdfast.runs.wait(id, { timeout: "5m" });
      if (round % 4 === 0) await holdfast.runs.retry(delayed.id).catch(() => undefined);
      if (round % 5 === 0) await holdfast.schedules.trigger("each-second").catch(() => undefined);
      if (round % 10 === 9) await holdfast.prune();
      const paced = await quick.enqueue({ n: 1 }, { delay: PACE_MS });
      await holdfast.runs.wait(paced.id, { timeout: "5m" });
      if (round % 6 === 0) {
        await holdfast.schedules.pause("drawn").catch(() => undefined);
        await holdfast.schedules.resume("drawn").catch(() => undefined);
      }
    }
  };
  await Promise.all(members.map(work));
}

async function checkedUnderLoad(options: Options): Promise<void> {
  const members = [member(options), member(options), member(options)];
  const observer = new Holdfast({ ...options, logger: SILENT });
  for (const { holdfast } of members) await holdfast.start({ worker: { concurrency: 8 } });
  let isOver = false;
  const writes = new EventEmitter();
  const working = load(members, { isOver: () => isOver, onWritten: () => writes.emit("written") });
  try {
    for (let time = 1; time <= TIMES; time += 1) {
      // One snapshot after the other, without a moment between, would keep SQLite's log from ever ending.
      for (let written = 0; written < 3; written += 1) await once(writes, "written");
      const report = await observer.check();
      expect(
        report.checks.filter(({ ok }) => !ok),
        `the check number ${time}`,
      ).toEqual([]);
    }
  } finally {
    isOver = true;
    await working;
    await Promise.all(members.map(({ holdfast }) => holdfast.stop({ grace: "5s" })));
    await observer.stop();
  }
}

describe("under load, a healthy database has nothing to report", () => {
  test("on SQLite", { timeout: PATIENCE_MS }, async () => {
    const folder = mkdtempSync(path.join(tmpdir(), "holdfast-check-"));
    await checkedUnderLoad({
      database: `sqlite:${path.join(folder, "app.db")}`,
      synchronous: "NORMAL",
    });
    rmSync(folder, { recursive: true, force: true });
  });

  test.runIf(POSTGRES_URL)("on PostgreSQL", { timeout: PATIENCE_MS }, async () => {
    const schema = `check_${crypto.randomUUID().replaceAll("-", "_")}`;
    await checkedUnderLoad({ database: POSTGRES_URL as string, schema });
    const client = new pg.Client(POSTGRES_URL);
    await client.connect();
    await client.query(`drop schema "${schema}" cascade`);
    await client.end();
  });
});
