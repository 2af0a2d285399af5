// The worker: gets runs from Holdfast as signed requests and does their studies, one after the other. Each
// study is done once, however often its run is tried again.

import { createReceiver, PermanentError, type Receiver } from "holdfast";
import type { WorkContext } from "holdfast/client";
import type { Kysely } from "kysely";
import type { Listing } from "./listings.js";
import { type Found, Results, type StudyResult } from "./results.js";
import { STUDY, type StudyInput, studyInput } from "./studies.js";

export type WorkerParams = {
  readonly db: Kysely<unknown>;
  readonly sourceUrl: string;
  readonly secret: string;
  /** Called for every study that was done here. */
  readonly onStudy?: (studyId: string, result: StudyResult, ctx: WorkContext) => void;
  readonly onError?: (error: unknown) => void;
};

export function studyWorker(params: WorkerParams): Receiver {
  const { secret, onError } = params;
  return createReceiver({
    secret,
    heartbeatMs: 30_000,
    // The input arrives as it was enqueued; the schema fills in the rest.
    jobs: { [STUDY]: (input, ctx) => runStudies(studyInput.parse(input), ctx, params) },
    ...(onError && { onError }),
  });
}

async function runStudies(input: StudyInput, ctx: WorkContext, params: WorkerParams) {
  const results = new Results(params.db);
  await results.begin(ctx, input);
  for (const studyId of input.studyIds) {
    const startedAt = Date.now();
    let result = await results.find(ctx.runId, studyId);
    if (result === null) {
      const found = await doStudy(studyId, input, ctx, { results, sourceUrl: params.sourceUrl });
      result = await results.store(ctx, studyId, found);
      ctx.log(`${studyId}: ${result.status} ${result.targetErrorReason ?? ""}`.trim());
      params.onStudy?.(studyId, result, ctx);
    }
    // Also for the result of an earlier attempt, which may have died before this; the same again changes nothing.
    const durationMs = Date.now() - startedAt;
    await ctx.item(studyId, result, { outcome: result.status, durationMs });
  }
  return results.outcomes(ctx.runId);
}

async function doStudy(
  studyId: string,
  { scrapeMode, threshold }: StudyInput,
  ctx: WorkContext,
  { results, sourceUrl }: { readonly results: Results; readonly sourceUrl: string },
): Promise<Found> {
  const study = await results.study(studyId);
  if (study === null)
    throw new PermanentError(`there is no study ${studyId}`, { code: "STUDY_UNKNOWN" });
  // The start and the end of a scrape count as heartbeats.
  const scrape = async (what: "target" | "source") => {
    await ctx.progress({ stage: `${studyId}: ${what} scrape start` });
    const query = new URLSearchParams({ study: studyId, mode: scrapeMode });
    const listings = await listingsOf(`${sourceUrl}/${study[what]}?${query}`, ctx.signal);
    await ctx.progress({ stage: `${studyId}: ${what} scrape complete` });
    return listings;
  };
  const target = await scrape("target");
  if (target === null)
    return { ...NOTHING, status: "TARGET_BLOCKED", targetErrorReason: "HTTP 403" };
  const source = await scrape("source");
  // Without a source there is nothing to compare with; trying again soon would not help.
  if (source === null) throw new PermanentError(`${study.source} blocked us`);
  return compare(target, source, threshold);
}

const NOTHING: Found = {
  status: "NULL",
  targetMarketPrice: null,
  bestSourcePrice: null,
  priceDifference: null,
  targetErrorReason: null,
  targetStats: {},
  listings: [],
};

/** What is cheaper than the usual price at home by at least the threshold is an opportunity. */
function compare(target: readonly Listing[], source: readonly Listing[], threshold: number): Found {
  const prices = target.map(({ price }) => price).sort((left, right) => left - right);
  const usual = prices[Math.floor(prices.length / 2)];
  if (usual === undefined || source.length === 0) return NOTHING;
  const best = Math.min(...source.map(({ price }) => price));
  const listings = source.filter(({ price }) => usual - price >= threshold);
  return {
    ...NOTHING,
    status: listings.length > 0 ? "OPPORTUNITIES" : "NULL",
    targetMarketPrice: usual,
    bestSourcePrice: best,
    priceDifference: usual - best,
    targetStats: { listings: target.length, median: usual },
    listings,
  };
}

/** Null: the market blocked us. */
async function listingsOf(url: string, signal: AbortSignal): Promise<readonly Listing[] | null> {
  const response = await fetch(url, { signal });
  const { ok, status } = response;
  if (ok) return ((await response.json()) as { listings: Listing[] }).listings;
  if (status === 403) return null;
  const { pathname } = new URL(url);
  // The status tells Holdfast whether another attempt may help.
  throw Object.assign(new Error(`listings of ${pathname.slice(1)}: status ${status}`), {
    status,
    code: `HTTP_${status}`,
  });
}
