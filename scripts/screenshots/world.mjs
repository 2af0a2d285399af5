// The world of the screenshots: overnight market studies and what goes with them. Declared once, and
// lived through twice: a day of it in virtual time, then for real while the pictures are taken.

import { z } from "zod";

/**
 * @typedef {import("../../src/engine/holdfast.js").Holdfast} Holdfast
 * @typedef {(duration: string, signal?: AbortSignal) => Promise<void>} Sleep
 */

const MARKETS = {
  eu: [
    "berlin",
    "lisbon",
    "lyon",
    "madrid",
    "milan",
    "paris",
    "porto",
    "rotterdam",
    "vienna",
    "warsaw",
  ],
  us: ["austin", "boston", "chicago", "denver", "houston", "miami", "portland", "seattle"],
  asia: ["bangkok", "busan", "fukuoka", "hanoi", "osaka", "taipei", "tokyo"],
};

/** The same numbers every time. @param {number} seed */
export function chanceOf(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) | 0;
    return ((state ^ (state >>> 12)) >>> 0) / 2 ** 32;
  };
}

/**
 * @param {Holdfast} holdfast
 * @param {{ sleep: Sleep, chance: () => number, PermanentError: new (message: string) => Error }} around
 */
export function declareWorld(holdfast, { sleep, chance, PermanentError }) {
  /** @param {number} min @param {number} max */
  const seconds = (min, max) => `${Math.round((min + (max - min) * chance() ** 2) * 1_000)}ms`;
  /** @param {string} message @param {string} code */
  const trouble = (message, code) => Object.assign(new Error(message), { code });

  const study = holdfast.job("market-study", {
    input: z.object({
      market: z.enum(["eu", "us", "asia"]).describe("which cities are looked at"),
      threshold: z.number().min(0).max(1).default(0.12).describe("least saving that counts"),
      notify: z.boolean().optional(),
    }),
    queue: "studies",
    timeout: "2h",
    lease: "5m",
    retry: { attempts: 3, delay: "30s", factor: 2 },
    async run({ market, threshold }, ctx) {
      const cities = MARKETS[market];
      ctx.log.info({ market, threshold }, `looking at ${cities.length} cities`);
      await ctx.progress({ stage: "fetching listings", done: 0, total: cities.length });
      for (const [index, city] of cities.entries()) {
        await ctx.item(
          city,
          async () => {
            await sleep(seconds(4, 70), ctx.signal);
            if (chance() < 0.05) throw trouble(`listings of ${city}: 502 Bad Gateway`, "HTTP_502");
            const listings = Math.round(chance() * 40);
            return { listings, best: Number((threshold + chance() * 0.2).toFixed(3)) };
          },
          {
            onError: "record",
            outcome: (value) => (value.listings > 12 ? "opportunities" : "none"),
          },
        );
        await ctx.progress({ stage: "comparing prices", done: index + 1, total: cities.length });
        ctx.log.info({ city }, `${city} compared`);
      }
      if (chance() < 0.08) throw trouble("the pricing service hung up", "ECONNRESET");
      return { market, cities: cities.length };
    },
  });
  const signals = holdfast.job("refresh-signals", {
    retry: { attempts: 2, delay: "5s" },
    async run(_, ctx) {
      await sleep(seconds(2, 20), ctx.signal);
      if (chance() < 0.06) throw trouble("signal feed: rate limit exceeded", "HTTP_429");
      return { signals: Math.round(chance() * 900) };
    },
  });
  const snapshot = holdfast.job("camera-snapshot", {
    queue: "cameras",
    retry: { attempts: 1 },
    async run(_, ctx) {
      await sleep(seconds(3, 30), ctx.signal);
      if (chance() < 0.035) throw trouble("camera 4 does not answer within 10 s", "ETIMEDOUT");
      if (chance() < 0.03) await sleep("9m", ctx.signal);
      return { frames: 6 };
    },
  });
  const report = holdfast.job("campaign-report", {
    retry: { attempts: 4, delay: "10s", factor: 2, max: "60s", jitter: 0 },
    async run(_, ctx) {
      await sleep(seconds(6, 60), ctx.signal);
      if (chance() < 0.25) throw trouble("marketing API: socket hang up", "ECONNRESET");
      if (chance() < 0.05) throw new PermanentError("campaign 8812 maps to no instance of the API");
      return { rows: Math.round(chance() * 9_000) };
    },
  });
  const reconcile = holdfast.job("reconcile-address", {
    queue: "reconciliation",
    concurrency: { limit: 4 },
    retry: { attempts: 3, delay: "1s", factor: 2, max: "30s" },
    async run(_, ctx) {
      await sleep(seconds(1, 12), ctx.signal);
      if (chance() < 0.03) throw trouble("ledger and chain differ by 0.0004", "BALANCE_MISMATCH");
      return { checked: 1 };
    },
  });
  const reconciliation = holdfast.job("plan-reconciliation", {
    queue: "reconciliation",
    async run(_, ctx) {
      const children = Array.from({ length: 24 }, (_each, no) => ({
        job: reconcile,
        input: { address: `bc1q${(no * 7_919).toString(36).padStart(6, "0")}`, mode: "partial" },
      }));
      return ctx.enqueueBatch(children, { name: "addresses" });
    },
  });
  const backup = holdfast.job("backup", {
    timeout: "1h",
    async run(_, ctx) {
      for (const [no, stage] of ["snapshot", "compress", "upload", "verify"].entries()) {
        await ctx.progress({ stage, done: no, total: 4 });
        await sleep(seconds(40, 300), ctx.signal);
      }
      return { bytes: 48_211_004 };
    },
  });

  holdfast.schedule("studies-eu", study, {
    cron: "0 2,8,14,20 * * *",
    timezone: "Europe/Paris",
    input: { market: "eu" },
    missed: { run: "latest", within: "6h" },
  });
  holdfast.schedule("studies-us", study, {
    cron: "30 */3 * * *",
    timezone: "America/New_York",
    input: { market: "us", threshold: 0.15 },
    overlap: "queue",
  });
  holdfast.schedule("studies-asia", study, {
    cron: "0 */4 * * *",
    timezone: "Asia/Tokyo",
    input: { market: "asia" },
  });
  holdfast.schedule("refresh-signals", signals, { every: "10m..15m", afterFailure: "20m..40m" });
  holdfast.schedule("camera-snapshots", snapshot, { every: "5m" });
  holdfast.schedule("camera-archive", snapshot, { cron: "15 * * * *", missed: "skip" });
  holdfast.schedule("campaign-reports", report, { cron: "*/20 * * * *" });
  holdfast.schedule("spend-report", report, { cron: "5 * * * mon-fri", timezone: "Europe/London" });
  holdfast.schedule("reconciliation", reconciliation, { cron: "0 2,14 * * *" });
  holdfast.schedule("backup", backup, { cron: "30 1,7,13,19 * * *" });
  holdfast.schedule("heartbeat", signals, { every: "1m", overlap: "skip" });
  return { study, reconcile };
}
