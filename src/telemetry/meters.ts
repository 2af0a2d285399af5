// Counts the work of this process for /metrics: from events if they are rare, and from direct calls for every run. Never
// reads the database.

import type { Family, HistogramValue, Labels, Sample } from "./exposition.js";
import type { EventName, Events } from "./log.js";
import { METRICS, type MetricName } from "./metric-names.js";

/** Seconds, from a fast handler to the longest time limit that is usual. */
const RUN_BOUNDS = [0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 1800, 3600, 7200];
const DELAY_BOUNDS = [0.01, 0.05, 0.1, 0.5, 1, 2, 5, 15, 30, 60, 300, 900, 3600];
const LATENESS_BOUNDS = [0.1, 0.5, 1, 2, 5, 15, 30, 60, 300, 900, 3600, 21_600, 86_400];
const SHORT_BOUNDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
const LOCK_BOUNDS = [0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600];

/** Counted by direct calls, as there is one for every run or poll. */
export interface Meter {
  runStarted(facts: {
    readonly job: string;
    readonly dueAt: number;
    readonly wallMs: number;
  }): void;
  runEnded(facts: {
    readonly job: string;
    /** The number of the schedule that made it. */
    readonly schedule: number | null;
    readonly outcome: string;
    readonly ranMs: number;
  }): void;
  attemptEnded(job: string, end: string): void;
  /** The number of runs of a claim that was made because runs were ready. */
  claimed(count: number): void;
  tickClaimed(isWon: boolean): void;
  polled(facts: {
    readonly tookMs: number;
    /** How far this clock is ahead of the database's. */
    readonly skewMs: number;
  }): void;
  timerFired(lateMs: number): void;
}

/** Events that are counted, and so are emitted even without a listener. */
const COUNTED: ReadonlySet<EventName> = new Set<EventName>([
  "run.lost",
  "run.stale",
  "run.reclaimed",
  "item.failed",
  "tick.fired",
  "tick.skipped",
  "tick.missed",
  "lock.acquired",
  "lock.refused",
  "lock.taken_over",
  "lock.released",
  "lock.lost",
  "store.failed",
  "access.signed_in",
  "access.refused",
]);

export class Meters implements Meter {
  readonly #counters = {
    holdfast_runs_total: new Counter(["job*", "schedule*", "outcome"]),
    holdfast_attempts_total: new Counter(["job*", "end"]),
    holdfast_ticks_total: new Counter(["schedule*", "outcome", "reason"]),
    holdfast_tick_claims_total: new Counter(["result"]),
    holdfast_claims_total: new Counter(["result"]),
    holdfast_claimed_runs_total: new Counter(),
    holdfast_lease_losses_total: new Counter(["job*"]),
    holdfast_stale_results_total: new Counter(),
    holdfast_reclaims_total: new Counter(["job*", "end"]),
    holdfast_items_failed_total: new Counter(["job*"]),
    holdfast_locks_total: new Counter(["result"]),
    holdfast_locks_lost_total: new Counter(),
    holdfast_store_failures_total: new Counter(["what*"]),
    holdfast_access_total: new Counter(["result"]),
  };
  readonly #histograms = {
    holdfast_run_duration_seconds: new Histogram(RUN_BOUNDS, ["job*"]),
    holdfast_run_delay_seconds: new Histogram(DELAY_BOUNDS, ["job*"]),
    holdfast_tick_lateness_seconds: new Histogram(LATENESS_BOUNDS, ["schedule*"]),
    holdfast_lock_wait_seconds: new Histogram(LOCK_BOUNDS),
    holdfast_lock_hold_seconds: new Histogram(LOCK_BOUNDS),
    holdfast_poll_duration_seconds: new Histogram(SHORT_BOUNDS),
    holdfast_event_loop_lag_seconds: new Histogram(SHORT_BOUNDS),
  };
  readonly #schedules = new Set<number>();
  #skewMs: number | null = null;

  constructor() {
    // Metrics without labels exist from the beginning: a rate needs a zero to rise from.
    const { holdfast_claims_total: claims, holdfast_tick_claims_total: ticks } = this.#counters;
    for (const result of ["won", "lost"]) {
      claims.add([result], 0);
      ticks.add([result], 0);
    }
    for (const result of ["acquired", "taken_over", "refused"])
      this.#counters.holdfast_locks_total.add([result], 0);
    for (const result of ["signed_in", "refused"])
      this.#counters.holdfast_access_total.add([result], 0);
    this.#counters.holdfast_claimed_runs_total.add([], 0);
    this.#counters.holdfast_stale_results_total.add([], 0);
    this.#counters.holdfast_locks_lost_total.add([], 0);
  }

  /** How far this machine's clock is ahead of the database's; null before the first poll. */
  get skewMs(): number | null {
    return this.#skewMs;
  }

  /** Numbers of the schedules whose runs were counted; the database knows their names. */
  get schedules(): readonly number[] {
    return [...this.#schedules];
  }

  runStarted({ job, dueAt, wallMs }: Parameters<Meter["runStarted"]>[0]): void {
    const delayMs = wallMs - (this.#skewMs ?? 0) - dueAt;
    this.#histograms.holdfast_run_delay_seconds.observe([job], Math.max(0, delayMs) / 1_000);
  }

  runEnded({ job, schedule, outcome, ranMs }: Parameters<Meter["runEnded"]>[0]): void {
    if (schedule !== null) this.#schedules.add(schedule);
    const by = schedule === null ? "" : `#${schedule}`;
    this.#counters.holdfast_runs_total.add([job, by, outcome]);
    this.#histograms.holdfast_run_duration_seconds.observe([job], ranMs / 1_000);
  }

  attemptEnded(job: string, end: string): void {
    this.#counters.holdfast_attempts_total.add([job, end]);
  }

  claimed(count: number): void {
    this.#counters.holdfast_claims_total.add([count > 0 ? "won" : "lost"]);
    if (count > 0) this.#counters.holdfast_claimed_runs_total.add([], count);
  }

  tickClaimed(isWon: boolean): void {
    this.#counters.holdfast_tick_claims_total.add([isWon ? "won" : "lost"]);
  }

  polled({ tookMs, skewMs }: Parameters<Meter["polled"]>[0]): void {
    this.#histograms.holdfast_poll_duration_seconds.observe([], tookMs / 1_000);
    this.#skewMs = skewMs;
  }

  timerFired(lateMs: number): void {
    this.#histograms.holdfast_event_loop_lag_seconds.observe([], Math.max(0, lateMs) / 1_000);
  }

  readonly wants = (name: EventName): boolean => COUNTED.has(name);

  readonly hear = <Name extends EventName>(name: Name, facts: Events[Name]): void => {
    if (!COUNTED.has(name)) return;
    const event = { name, facts } as {
      [Each in EventName]: { name: Each; facts: Events[Each] };
    }[EventName];
    const counters = this.#counters;
    const histograms = this.#histograms;
    switch (event.name) {
      case "run.lost":
        counters.holdfast_lease_losses_total.add([event.facts.job]);
        break;
      case "access.signed_in":
      case "access.refused":
        counters.holdfast_access_total.add([event.name.slice("access.".length)]);
        break;
      case "run.stale":
        counters.holdfast_stale_results_total.add([]);
        break;
      case "run.reclaimed":
        counters.holdfast_reclaims_total.add([event.facts.job, event.facts.end]);
        break;
      case "item.failed":
        counters.holdfast_items_failed_total.add([event.facts.job]);
        break;
      case "tick.fired": {
        const { schedule, reason, lateMs } = event.facts;
        counters.holdfast_ticks_total.add([schedule, "fired", reason]);
        const late = Math.max(0, lateMs) / 1_000;
        histograms.holdfast_tick_lateness_seconds.observe([schedule], late);
        break;
      }
      case "tick.skipped":
      case "tick.missed": {
        const { schedule, reason, count } = event.facts;
        const outcome = event.name === "tick.skipped" ? "skipped" : "missed";
        counters.holdfast_ticks_total.add([schedule, outcome, reason], count);
        break;
      }
      case "lock.acquired":
        counters.holdfast_locks_total.add(["acquired"]);
        histograms.holdfast_lock_wait_seconds.observe([], event.facts.waitedMs / 1_000);
        break;
      case "lock.taken_over":
        counters.holdfast_locks_total.add(["taken_over"]);
        break;
      case "lock.refused":
        counters.holdfast_locks_total.add(["refused"]);
        break;
      case "lock.released":
        histograms.holdfast_lock_hold_seconds.observe([], event.facts.heldMs / 1_000);
        break;
      case "lock.lost":
        counters.holdfast_locks_lost_total.add([]);
        break;
      case "store.failed":
        // Without the name of the schedule, which would make a series of its own.
        counters.holdfast_store_failures_total.add([
          event.facts.what.startsWith("schedule ") ? "schedule" : event.facts.what,
        ]);
    }
  };

  /** All counts so far; `names` maps numbers of schedules to names. */
  families(names: ReadonlyMap<number, string>): Family[] {
    const nameOf = (value: string) => names.get(Number(value.slice(1))) ?? value;
    const named = ({ labels, value }: Sample): Sample => ({
      labels: labels.map(([label, each]) =>
        label === "schedule" && /^#\d+$/.test(each) ? [label, nameOf(each)] : [label, each],
      ),
      value,
    });
    const counted = { ...this.#counters, ...this.#histograms };
    return Object.entries(counted).map(([name, meter]) =>
      familyOf(
        name as MetricName,
        name === "holdfast_runs_total" ? meter.samples().map(named) : meter.samples(),
      ),
    );
  }
}

export function familyOf(name: MetricName, samples: readonly Sample[]): Family {
  const { type, help } = METRICS[name];
  return { name, type, help, samples };
}

/** One value without labels; no family if it is unknown. */
export function single(name: MetricName, value: number | null): Family {
  return familyOf(name, value === null ? [] : [{ labels: [], value }]);
}

// ── counters and histograms with labels, cheap enough for every run. Beyond a number of label sets, new ones count as `other`. ──

/** How many sets of label values one metric keeps. */
export const SERIES_MAX = 500;
/** The label value for all further sets. */
export const OTHER = "other";

const SEPARATOR = "\u0000";

/** Values by their labels, in order of first use. */
class Series<Value> {
  readonly #byKey = new Map<string, { readonly values: readonly string[]; readonly held: Value }>();
  readonly #names: readonly string[];
  readonly #isOpen: readonly boolean[];
  readonly #make: () => Value;

  /** Labels whose name ends with `*` have values chosen by users, and are bounded. */
  constructor(names: readonly string[], make: () => Value) {
    this.#names = names.map((name) => name.replace("*", ""));
    this.#isOpen = names.map((name) => name.endsWith("*"));
    this.#make = make;
  }

  of(values: readonly string[]): Value {
    const key = values.length === 1 ? (values[0] as string) : values.join(SEPARATOR);
    const found = this.#byKey.get(key);
    if (found) return found.held;
    if (this.#byKey.size >= SERIES_MAX) {
      const others = values.map((value, at) => (this.#isOpen[at] ? OTHER : value));
      if (others.join(SEPARATOR) !== key) return this.of(others);
    }
    const held = this.#make();
    this.#byKey.set(key, { values, held });
    return held;
  }

  samples(toValue: (held: Value) => number | HistogramValue): Sample[] {
    return [...this.#byKey.values()].map(({ values, held }) => ({
      labels: values.map((value, at) => [this.#names[at] ?? "", value]) satisfies Labels,
      value: toValue(held),
    }));
  }
}

export class Counter {
  readonly #series: Series<{ total: number }>;

  constructor(labels: readonly string[] = []) {
    this.#series = new Series(labels, () => ({ total: 0 }));
  }

  add(values: readonly string[], by = 1): void {
    this.#series.of(values).total += by;
  }

  samples(): Sample[] {
    return this.#series.samples(({ total }) => total);
  }
}

type Observed = { readonly counts: number[]; count: number; sum: number };

export class Histogram {
  readonly #series: Series<Observed>;
  readonly #bounds: readonly number[];

  constructor(bounds: readonly number[], labels: readonly string[] = []) {
    this.#bounds = bounds;
    this.#series = new Series(labels, () => ({ counts: bounds.map(() => 0), count: 0, sum: 0 }));
  }

  observe(values: readonly string[], value: number): void {
    const observed = this.#series.of(values);
    observed.count += 1;
    observed.sum += value;
    for (let at = 0; at < this.#bounds.length; at += 1) {
      if (value > (this.#bounds[at] as number)) continue;
      observed.counts[at] = (observed.counts[at] as number) + 1;
      return;
    }
  }

  samples(): Sample[] {
    const bounds = this.#bounds;
    return this.#series.samples(({ counts, count, sum }) => ({
      bounds,
      counts: [...counts],
      count,
      sum,
    }));
  }
}
