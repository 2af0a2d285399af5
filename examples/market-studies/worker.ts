// The worker: gets runs from Holdfast as signed requests and does their studies, one after the other. A study is a
// durable step, so that a run that is tried again goes on where it was.

import { createReceiver, PermanentError } from "holdfast";
import type { WorkContext } from "holdfast/client";
import { type Kysely, sql } from "kysely";
import type { Listing } from "./listings.js";
import { type Found, holdRun, storeResult } from "./results.js";
import { STUDY, type StudyInput, studyInput } from "./studies.js";

export type WorkerParams = {
  readonly db: Kysely<unknown>;
  readonly sourceUrl: string;
  readonly secret: string;
  readonly print?: (line: string) => void;
};

export function studyWorker({ db, sourceUrl, secret, print }: WorkerParams) {
  async function runStudies(input: StudyInput, ctx: WorkContext) {
    await holdRun(db, ctx, input);
    for (const studyId of new Set(input.studyIds)) {
      const startedMs = Date.now();
      const result = await ctx.step(studyId, async () => {
        const found = await doStudy(studyId, input, ctx);
        await storeResult(db, ctx, { input, studyId, found });
        const { listings: _, ...result } = found;
        const line = `${studyId}: ${result.status} ${result.reason ?? ""}`.trim();
        ctx.log(line);
        print?.(line);
        return result;
      });
      const durationMs = Date.now() - startedMs;
      await ctx.item(studyId, result, { outcome: result.status, durationMs });
    }
  }

  async function doStudy(studyId: string, input: StudyInput, ctx: WorkContext): Promise<Found> {
    const { rows } = await sql<{ target: string; source: string }>`
      select target_country as target, source_country as source
      from studies where id = ${studyId}`.execute(db);
    if (!rows[0])
      throw new PermanentError(`there is no study ${studyId}`, { code: "STUDY_UNKNOWN" });
    const { target, source } = rows[0];
    // The start and the end of a scrape count as heartbeats.
    const scrape = async (name: "target" | "source", country: string) => {
      await ctx.progress({ stage: `${studyId}: ${name} scrape start` });
      const query = new URLSearchParams({ study: studyId, mode: input.scrapeMode });
      const response = await fetch(`${sourceUrl}/${country}?${query}`, { signal: ctx.signal });
      const { status } = response;
      // The status tells Holdfast whether another attempt may help.
      if (!response.ok && status !== 403)
        throw Object.assign(new Error(`listings of ${country}: status ${status}`), {
          status,
          code: `HTTP_${status}`,
        });
      await ctx.progress({ stage: `${studyId}: ${name} scrape complete` });
      // Null: the market blocked us.
      return response.ok ? ((await response.json()) as { listings: Listing[] }).listings : null;
    };
    const atHome = await scrape("target", target);
    if (!atHome) return { status: "TARGET_BLOCKED", reason: "HTTP 403", listings: [] };
    const abroad = await scrape("source", source);
    // Without a source there is nothing to compare with; trying again soon would not help.
    if (!abroad) throw new PermanentError(`${source} blocked us`);
    return compare(atHome, abroad, input.threshold);
  }

  return createReceiver({
    secret,
    heartbeatMs: 30_000,
    // The input arrives as it was enqueued; the schema fills in the rest.
    jobs: { [STUDY]: (input, ctx) => runStudies(studyInput.parse(input), ctx) },
  });
}

/** A listing that is cheaper than the usual price at home by at least the threshold is an opportunity. */
function compare(atHome: readonly Listing[], abroad: readonly Listing[], threshold: number): Found {
  const prices = atHome.map(({ price }) => price).sort((left, right) => left - right);
  const usual = prices[Math.floor(prices.length / 2)];
  if (usual === undefined || abroad.length === 0) return { status: "NULL", listings: [] };
  const listings = abroad.filter(({ price }) => usual - price >= threshold);
  return {
    status: listings.length > 0 ? "OPPORTUNITIES" : "NULL",
    targetPrice: usual,
    bestPrice: Math.min(...abroad.map(({ price }) => price)),
    stats: { listings: prices.length, median: usual },
    listings,
  };
}
