// The worker: gets runs from Holdfast as signed requests and does their studies, one after the other. Each
// study is done once, however often its run is tried again.

import { createReceiver, PermanentError, type Receiver } from "holdfast";
import type { WorkContext } from "holdfast/client";
import type { AppDatabase } from "../shared/database.js";
import type { Listing } from "./listings.js";
import { Results, type StudyResult } from "./results.js";
import { STUDY, type StudyInput, studyInput } from "./studies.js";

export type WorkerParams = {
  readonly db: AppDatabase;
  readonly sourceUrl: string;
  readonly secret: string;
  /** Hears of every study that was done here. */
  readonly onStudy?: (studyId: string, result: StudyResult, ctx: WorkContext) => void;
  readonly onError?: (error: unknown) => void;
};

export function studyWorker(params: WorkerParams): Receiver {
  const { secret, onError } = params;
  return createReceiver({
    secret,
    heartbeatMs: 30_000,
    // What was asked for is sent as it was asked; the schema fills in the rest.
    jobs: { [STUDY]: (input, ctx) => runStudies(studyInput.parse(input), ctx, params) },
    ...(onError && { onError }),
  });
}

async function runStudies(input: StudyInput, ctx: WorkContext, params: WorkerParams) {
  const results = new Results(params.db);
  await results.begin(ctx, input);
  for (const studyId of input.studyIds) {
    const startedAt = Date.now();
    const known = await results.find(ctx.runId, studyId);
    const result = known ?? (await doStudy(studyId, input, ctx, { results, ...params }));
    if (known === null) params.onStudy?.(studyId, result, ctx);
    // Also for what an earlier attempt found and had no time to tell; the same again changes nothing.
    await ctx.item(studyId, result, {
      outcome: result.status,
      durationMs: Date.now() - startedAt,
    });
  }
  return results.outcomes(ctx.runId);
}

async function doStudy(
  studyId: string,
  input: StudyInput,
  ctx: WorkContext,
  { results, sourceUrl }: WorkerParams & { readonly results: Results },
): Promise<StudyResult> {
  const study = await results.study(studyId);
  if (study === null)
    throw new PermanentError(`there is no study ${studyId}`, { code: "STUDY_UNKNOWN" });
  const ask = (country: string) =>
    listingsOf({ sourceUrl, country, studyId, mode: input.scrapeMode, signal: ctx.signal });
  // Each stage counts as a heartbeat.
  await ctx.progress({ stage: `${studyId}: target scrape start` });
  const target = await ask(study.target);
  await ctx.progress({ stage: `${studyId}: target scrape complete` });
  if (target === "blocked") {
    ctx.log(`${studyId}: ${study.target} blocked us`, "warn");
    const blocked = {
      ...NOTHING,
      status: "TARGET_BLOCKED",
      targetErrorReason: "HTTP 403",
    } as const;
    await results.store(ctx, studyId, { ...blocked, targetStats: {}, listings: [] });
    return blocked;
  }
  await ctx.progress({ stage: `${studyId}: source scrape start` });
  const source = await ask(study.source);
  await ctx.progress({ stage: `${studyId}: source scrape complete` });
  // Without a source there is nothing to compare with; trying again soon would not help.
  if (source === "blocked") throw new PermanentError(`${study.source} blocked us`);
  const { result, listings } = compare(target, source, input.threshold);
  const targetStats = { listings: target.length, median: result.targetMarketPrice };
  await results.store(ctx, studyId, { ...result, targetStats, listings });
  ctx.log(`${studyId}: ${result.status}, ${listings.length} listings`);
  return result;
}

const NOTHING: StudyResult = {
  status: "NULL",
  targetMarketPrice: null,
  bestSourcePrice: null,
  priceDifference: null,
  targetErrorReason: null,
};

/** What is cheaper than the usual price at home by at least the threshold is an opportunity. */
function compare(target: readonly Listing[], source: readonly Listing[], threshold: number) {
  const prices = target.map(({ price }) => price).sort((left, right) => left - right);
  const usual = prices[Math.floor(prices.length / 2)];
  if (usual === undefined || source.length === 0) return { result: NOTHING, listings: [] };
  const best = Math.min(...source.map(({ price }) => price));
  const listings = source.filter(({ price }) => usual - price >= threshold);
  const result: StudyResult = {
    status: listings.length > 0 ? "OPPORTUNITIES" : "NULL",
    targetMarketPrice: usual,
    bestSourcePrice: best,
    priceDifference: usual - best,
    targetErrorReason: null,
  };
  return { result, listings };
}

async function listingsOf(asked: {
  readonly sourceUrl: string;
  readonly country: string;
  readonly studyId: string;
  readonly mode: string;
  readonly signal: AbortSignal;
}): Promise<readonly Listing[] | "blocked"> {
  const { sourceUrl, country, studyId, mode, signal } = asked;
  const query = new URLSearchParams({ study: studyId, mode });
  const response = await fetch(`${sourceUrl}/${country}?${query}`, { signal });
  if (response.status === 403) return "blocked";
  if (!response.ok)
    // Its status says whether another attempt may help.
    throw Object.assign(new Error(`listings of ${country}: status ${response.status}`), {
      status: response.status,
      code: `HTTP_${response.status}`,
    });
  return ((await response.json()) as { listings: Listing[] }).listings;
}
