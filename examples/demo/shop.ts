// The jobs and schedules of the demo, a web shop. They run twice: 24 hours in virtual time, and then in real time.

import { type Duration, type Holdfast, PermanentError } from "holdfast";

/** The differences between the two runs. */
export type Around = {
  readonly sleep: (duration: Duration, signal: AbortSignal) => Promise<void>;
  /** From 0 to 1. */
  readonly chance: () => number;
  /** Whether the provider of the exchange rates responds. */
  readonly isProviderUp: () => boolean;
};

/** The monitor of a program that Holdfast does not run, and that checks in here. */
export const PARTNER = "partner-feed";
const ORDERS = 20;

export function declareShop(holdfast: Holdfast, { sleep, chance, isProviderUp }: Around): void {
  const takes = (minS: number, maxS: number, signal: AbortSignal) =>
    sleep(Math.round((minS + (maxS - minS) * chance() ** 2) * 1_000), signal);

  const stock = holdfast.job("sync-stock", {
    retry: { attempts: 3, delay: "2s" },
    async run(_, { signal }) {
      await takes(1, 8, signal);
      if (chance() < 0.01) throw new Error("the warehouse closed the connection");
      return { changed: Math.round(chance() * 40) };
    },
  });
  const rates = holdfast.job("fetch-rates", {
    retry: { attempts: 2, delay: "10s" },
    async run(_, { signal }) {
      await takes(1, 5, signal);
      if (!isProviderUp()) throw new Error("the provider of exchange rates answered 503");
      return { rates: 31 };
    },
  });
  const catalogue = holdfast.job("import-catalogue", {
    timeout: "1h",
    async run(_, ctx) {
      // Sometimes it is still busy at its next tick, which is then skipped.
      const minutes = chance() < 0.12 ? 26 : 4;
      for (let done = 0; done < 4; done += 1) {
        await ctx.progress({ stage: "products", done: done * 2_500, total: 10_000 });
        await sleep(`${Math.round(minutes * 15)}s`, ctx.signal);
      }
      return { products: 10_000 };
    },
  });
  const pack = holdfast.job("pack-order", {
    queue: "packing",
    // Two tables to pack at: the other orders wait in line.
    concurrency: { limit: 2 },
    retry: { attempts: 2, delay: "5s" },
    async run(input: { order: number }, { signal }) {
      await takes(15, 70, signal);
      if (chance() < 0.004) throw new PermanentError(`order ${input.order} has no address`);
      return { parcel: input.order * 7 };
    },
  });
  const orders = holdfast.job("collect-orders", {
    queue: "packing",
    run(_, ctx) {
      const first = 1_000 + Math.floor(chance() * 8_000);
      const children = Array.from({ length: ORDERS }, (_each, no) => ({
        job: pack,
        input: { order: first + no },
      }));
      return ctx.enqueueBatch(children, { name: "orders" });
    },
  });
  const report = holdfast.job("hourly-report", {
    async run(_, { signal, log }) {
      await takes(10, 45, signal);
      log.info({ lines: 120 }, "report written");
      return { lines: 120 };
    },
  });
  const newsletter = holdfast.job("send-newsletter", {
    async run(_, ctx) {
      for (let done = 0; done < 5; done += 1) {
        await ctx.progress({ stage: "mails", done: done * 400, total: 2_000 });
        await takes(20, 60, ctx.signal);
      }
      return { mails: 2_000 };
    },
  });
  const backup = holdfast.job("backup", {
    timeout: "1h",
    async run(_, ctx) {
      for (const [done, stage] of ["dump", "compress", "upload", "verify"].entries()) {
        await ctx.progress({ stage, done, total: 4 });
        await takes(40, 240, ctx.signal);
      }
      return { megabytes: 482 };
    },
  });

  const tags = ["demo"];
  holdfast.schedule("stock", stock, { every: "2m", tags });
  holdfast.schedule("exchange-rates", rates, {
    every: "10m..20m",
    afterFailure: "4m..8m",
    tags,
  });
  holdfast.schedule("catalogue", catalogue, { cron: "*/20 * * * *", overlap: "skip", tags });
  holdfast.schedule("orders", orders, { every: "30m", overlap: "queue", tags });
  holdfast.schedule("report", report, { cron: "5 * * * *", missed: "skip", tags });
  holdfast.schedule("newsletter", newsletter, {
    cron: "0 9 * * *",
    timezone: "Europe/Berlin",
    missed: { run: "latest", within: "6h" },
    tags,
  });
  holdfast.schedule("backup", backup, {
    cron: "30 2 * * *",
    timezone: "America/New_York",
    tags,
  });
  holdfast.schedule(PARTNER, { monitor: true, cron: "0 * * * *", grace: "10m", tags });
}

/** Numbers that look random and are the same every time. */
export function chanceOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
