// Declares the jobs and schedules of the screenshots: the market studies of examples/ and their neighbours. They run
// twice: a day in virtual time, then in real time while the pictures are taken. The studies run inside the instance, so
// that a day of them takes little time.

import { register } from "tsx/esm/api";

register();
const { NIGHTLY, STUDIES, STUDY, studyInput } = await import(
  "../../examples/market-studies/studies.js"
);

/**
 * @typedef {import("../../src/holdfast.js").Holdfast} Holdfast
 * @typedef {(duration: string, signal?: AbortSignal) => Promise<void>} Sleep
 */

export const ALL = STUDIES.map(([id]) => id);
const STAGES = [
  "target scrape start",
  "target scrape complete",
  "source scrape start",
  "source scrape complete",
];

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

  const study = holdfast.job(STUDY, {
    input: studyInput,
    queue: "studies",
    timeout: "2h",
    lease: "10m",
    retry: { attempts: 3, delay: "30s", factor: 2 },
    async run({ studyIds, threshold }, ctx) {
      ctx.log.info({ threshold }, `${studyIds.length} studies`);
      for (const id of studyIds) {
        await ctx.item(
          id,
          async () => {
            for (const stage of STAGES) {
              await ctx.progress({ stage: `${id}: ${stage}` });
              await sleep(seconds(1, 18), ctx.signal);
            }
            if (chance() < 0.04) throw trouble("listings of DE: status 503", "HTTP_503");
            const difference = Math.round(chance() * 90) * 100;
            return {
              status:
                chance() < 0.06 ? "TARGET_BLOCKED" : difference > 4_000 ? "OPPORTUNITIES" : "NULL",
              priceDifference: difference,
            };
          },
          { onError: chance() < 0.5 ? "record" : "throw", outcome: ({ status }) => status },
        );
        ctx.log.info({ study: id }, `${id} compared`);
      }
      return { totalStudies: studyIds.length };
    },
  });
  const rates = holdfast.job("refresh-rates", {
    retry: { attempts: 2, delay: "5s" },
    async run(_, ctx) {
      await sleep(seconds(2, 20), ctx.signal);
      if (chance() < 0.06) throw trouble("exchange rates: rate limit exceeded", "HTTP_429");
      return { rates: Math.round(chance() * 40) };
    },
  });
  const listings = holdfast.job("check-listings", {
    queue: "listings",
    retry: { attempts: 1 },
    async run(_, ctx) {
      await sleep(seconds(3, 30), ctx.signal);
      if (chance() < 0.035)
        throw trouble("the market of NO does not answer within 10 s", "ETIMEDOUT");
      if (chance() < 0.03) await sleep("9m", ctx.signal);
      return { gone: Math.round(chance() * 6) };
    },
  });
  const digest = holdfast.job("send-digest", {
    retry: { attempts: 4, delay: "10s", factor: 2, max: "60s", jitter: 0 },
    async run(_, ctx) {
      await sleep(seconds(6, 60), ctx.signal);
      if (chance() < 0.25) throw trouble("mail server: socket hang up", "ECONNRESET");
      if (chance() < 0.05) throw new PermanentError("buyer 8812 has no address");
      return { listings: Math.round(chance() * 90) };
    },
  });
  const review = holdfast.job("review-listing", {
    queue: "reviews",
    concurrency: { limit: 4 },
    retry: { attempts: 3, delay: "1s", factor: 2, max: "30s" },
    async run(_, ctx) {
      await sleep(seconds(1, 12), ctx.signal);
      if (chance() < 0.03) throw trouble("the listing is gone", "LISTING_GONE");
      return { status: chance() < 0.3 ? "APPROVED" : "REJECTED" };
    },
  });
  const reviews = holdfast.job("plan-reviews", {
    queue: "reviews",
    async run(_, ctx) {
      const children = Array.from({ length: 24 }, (_each, no) => ({
        job: review,
        input: { listing: `https://cars.example/nl/${(no * 7_919).toString(36).padStart(6, "0")}` },
      }));
      return ctx.enqueueBatch(children, { name: "listings" });
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

  holdfast.schedule(NIGHTLY, study, {
    cron: "0 2,8,14,20 * * *",
    timezone: "Europe/Paris",
    input: { studyIds: ALL, type: "scheduled", scrapeMode: "full" },
    missed: { run: "latest", within: "6h" },
  });
  holdfast.schedule("yaris-watch", study, {
    cron: "30 */3 * * *",
    timezone: "Europe/Amsterdam",
    input: { studyIds: ALL.slice(0, 2), threshold: 3_000 },
    overlap: "queue",
  });
  holdfast.schedule("electric-watch", study, {
    cron: "0 */4 * * *",
    timezone: "Europe/Oslo",
    input: { studyIds: ALL.slice(2, 5), threshold: 6_000 },
  });
  holdfast.schedule("exchange-rates", rates, { every: "10m..15m", afterFailure: "20m..40m" });
  holdfast.schedule("approved-listings", listings, {
    every: "5m",
    alerts: { failureRate: { above: 0.03, over: "24h" } },
  });
  holdfast.schedule("rejected-listings", listings, { cron: "15 * * * *", missed: "skip" });
  holdfast.schedule("digest-buyers", digest, { cron: "*/20 * * * *" });
  holdfast.schedule("digest-sales", digest, { cron: "5 * * * mon-fri", timezone: "Europe/London" });
  holdfast.schedule("reviews", reviews, { cron: "0 2,14 * * *" });
  holdfast.schedule("backup", backup, { cron: "30 1,7,13,19 * * *" });
  holdfast.schedule("rates-pulse", rates, { every: "1m", overlap: "skip" });
  holdfast.schedule("billing-export", { monitor: true, cron: "0 4,16 * * *", grace: "10m" });
  return { study, review };
}
