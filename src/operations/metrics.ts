// Writes the text of `holdfast.metrics()`: the counts of this process, and figures from the database. The database is read
// at most once in five seconds, however many clients scrape, by a fixed number of statements; if it does not respond in
// time, its figures are left out.

import { ConfigurationError } from "../shared/errors.js";
import { type Clock, delay } from "../shared/ports.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { FigureRecord, StatisticsRecord } from "../store/statistics.js";
import type { Store } from "../store/store.js";
import {
  exposition,
  type Family,
  METRICS_FORMATS,
  type MetricsFormat,
  type Sample,
} from "../telemetry/exposition.js";
import { familyOf, type Meters, OTHER, SERIES_MAX, single } from "../telemetry/meters.js";
import { METRIC_NAMES } from "../telemetry/metric-names.js";

export type MetricsOptions = {
  /** @default "prometheus": the text format 0.0.4 */
  readonly format?: MetricsFormat | undefined;
};

/** Figures from the database are reused for this time. */
const FRESH_MS = 5_000;
/** Scrapers have a time limit of their own, usually ten seconds. */
const ANSWERED_WITHIN_MS = 5_000;
/** Runs of a lane are counted up to this many. */
const DEPTH_MAX = 100_000;
const DAY_MS = 24 * 3_600_000;

export type MetricsParams = {
  readonly store: () => Promise<Store>;
  readonly clock: Clock;
  readonly meters: Meters;
  /** Facts about the instance: `instance`, `engine`, `app`, `release`. */
  readonly info: readonly (readonly [string, string])[];
  /** Running runs, and their maximum. */
  readonly work: () => { readonly running: number; readonly max: number };
};

type DatabaseFigures = { readonly store: Store; readonly families: readonly Family[] };

export class Metrics {
  readonly #params: MetricsParams;
  readonly #names = new Map<number, string>();
  #cached: { readonly atMs: number; readonly reading: Promise<DatabaseFigures | null> } | null =
    null;

  constructor(params: MetricsParams) {
    this.#params = params;
  }

  async text({ format = "prometheus" }: MetricsOptions): Promise<string> {
    const cached = await this.#fresh();
    const { clock, meters, info, work } = this.#params;
    // Most calls read no database, and would leave timers and I/O no turn.
    await clock.giveWay?.();
    const { running, max } = work();
    const skewMs = meters.skewMs;
    const families = [
      familyOf("holdfast_info", [{ labels: info, value: 1 }]),
      ...meters.families(this.#names),
      single("holdfast_worker_runs", running),
      single("holdfast_worker_runs_max", max),
      single("holdfast_clock_skew_seconds", skewMs === null ? null : skewMs / 1_000),
      single("holdfast_database_up", cached ? 1 : 0),
      ...(cached ? [...loadFamilies(cached.store), ...cached.families] : []),
    ];
    const order = new Map(METRIC_NAMES.map((name, at) => [name as string, at]));
    families.sort((a, b) => (order.get(a.name) ?? 0) - (order.get(b.name) ?? 0));
    return exposition(families, format);
  }

  /** Concurrent calls share one read of the database. */
  #fresh(): Promise<DatabaseFigures | null> {
    const nowMs = this.#params.clock.monotonicMs();
    if (this.#cached && nowMs - this.#cached.atMs < FRESH_MS) return this.#cached.reading;
    const reading = this.#within(this.#read());
    const cached = { atMs: nowMs, reading };
    this.#cached = cached;
    // A failed read is not cached.
    void reading.then((figures) => {
      if (figures === null && this.#cached === cached) this.#cached = null;
    });
    return reading;
  }

  async #within(reading: Promise<DatabaseFigures>): Promise<DatabaseFigures | null> {
    const done = new AbortController();
    const tooLate = delay(this.#params.clock, ANSWERED_WITHIN_MS, done.signal).then(() => null);
    const figures = await Promise.race([reading.catch(() => null), tooLate]);
    done.abort();
    return figures;
  }

  async #read(): Promise<DatabaseFigures> {
    const store = await this.#params.store();
    const unknown = this.#params.meters.schedules.filter((id) => !this.#names.has(id));
    const [figures, ended, names] = await Promise.all([
      store.statistics.figures({ limit: DEPTH_MAX }),
      store.statistics.summary({ since: { agoMs: DAY_MS }, bucketMs: DAY_MS, job: null }),
      unknown.length > 0 ? store.schedules.names(unknown) : new Map<number, string>(),
    ]);
    for (const [id, name] of names) this.#names.set(id, name);
    return { store, families: [...figureFamilies(figures), ...dayFamilies(ended)] };
  }
}

export function readMetrics(options: MetricsOptions): MetricsOptions {
  const problems = refuseUnknownMembers(options, ["format"], "metrics()");
  if (options.format !== undefined && !METRICS_FORMATS.includes(options.format)) {
    const known = METRICS_FORMATS.map((each) => `"${each}"`).join(" or ");
    problems.push({ field: "metrics().format", message: `must be ${known}` });
  }
  if (problems.length > 0) throw new ConfigurationError(problems);
  return options;
}

function loadFamilies({ load }: Store): Family[] {
  const of = (work: number, transaction: number): Sample[] => [
    { labels: [["use", "work"]], value: work },
    { labels: [["use", "transaction"]], value: transaction },
  ];
  return [
    familyOf("holdfast_pool_connections", of(load.work, load.transactions)),
    familyOf("holdfast_pool_connections_max", of(load.workMax, load.transactionsMax)),
    single("holdfast_pool_statements", load.statements),
    single("holdfast_pool_waiting", load.waiting),
  ];
}

function figureFamilies(figures: readonly FigureRecord[]): Family[] {
  const of = (kind: FigureRecord["kind"]) => figures.filter((each) => each.kind === kind);
  const figureOf = (kind: FigureRecord["kind"], state: string) =>
    of(kind).find((each) => each.state === state)?.value ?? 0;
  const depths = of("queue").map(({ name, state, value }) => ({ key: name, state, value }));
  return [
    familyOf(
      "holdfast_queue_depth",
      bounded(depths).map(({ key, state, value }) => sample({ queue: key, state }, value)),
    ),
    familyOf(
      "holdfast_waits",
      ["sleep", "signal", "run"].map((kind) => sample({ for: kind }, figureOf("wait", kind))),
    ),
    familyOf(
      "holdfast_instances",
      of("instance").map(({ state, value }) => sample({ role: state }, value)),
    ),
    familyOf(
      "holdfast_schedules",
      ["active", "paused", "broken", "ended"].map((status) =>
        sample({ status }, figureOf("schedule", status)),
      ),
    ),
    single("holdfast_schedules_overdue", figureOf("overdue", "")),
    single("holdfast_locks_held", figureOf("lock", "held")),
    single("holdfast_locks_waiting", figureOf("lock", "waiting")),
  ];
}

function dayFamilies(records: readonly StatisticsRecord[]): Family[] {
  const ofJobs = records.filter(({ job }) => job !== null);
  const rows = (member: "runs" | "regular") =>
    bounded(
      ofJobs.map(({ job, status, ...each }) => ({
        key: job ?? "",
        state: status,
        value: each[member],
      })),
    );
  const judged = new Map<string, { completed: number; failed: number }>();
  for (const { key, state, value } of rows("regular")) {
    if (state !== "completed" && state !== "failed") continue;
    const counts = judged.get(key) ?? { completed: 0, failed: 0 };
    counts[state] += value;
    judged.set(key, counts);
  }
  return [
    familyOf(
      "holdfast_runs_last_day",
      rows("runs").map(({ key, state, value }) => sample({ job: key, outcome: state }, value)),
    ),
    familyOf(
      "holdfast_success_ratio",
      [...judged]
        .filter(([, { completed, failed }]) => completed + failed > 0)
        .map(([job, { completed, failed }]) => sample({ job }, completed / (completed + failed))),
    ),
  ];
}

type Row = { readonly key: string; readonly state: string; readonly value: number };

/** The largest keys keep their names; the rest are summed up as one. */
function bounded(rows: readonly Row[]): readonly Row[] {
  const sizes = new Map<string, number>();
  for (const { key, value } of rows) sizes.set(key, (sizes.get(key) ?? 0) + value);
  if (sizes.size <= SERIES_MAX) return rows;
  const largest = [...sizes].sort(([, a], [, b]) => b - a).slice(0, SERIES_MAX);
  const named = new Set(largest.map(([key]) => key));
  const others = new Map<string, number>();
  for (const { key, state, value } of rows)
    if (!named.has(key)) others.set(state, (others.get(state) ?? 0) + value);
  return [
    ...rows.filter(({ key }) => named.has(key)),
    ...[...others].map(([state, value]) => ({ key: OTHER, state, value })),
  ];
}

function sample(labels: Readonly<Record<string, string>>, value: number): Sample {
  return { labels: Object.entries(labels), value };
}
