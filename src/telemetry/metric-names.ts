// Lists every metric: its name, kind, labels, scope and help.
// `process`: counted by this process; the total is the sum over all instances.
// `database`: the same from every instance; use one of them, not the sum.

import type { MetricType } from "./exposition.js";

export type MetricInfo = {
  readonly type: MetricType;
  readonly of: "process" | "database";
  readonly labels: readonly string[];
  readonly help: string;
};

export const METRICS = {
  holdfast_info: {
    type: "gauge",
    of: "process",
    labels: ["instance", "engine", "app", "release"],
    help: "This instance; always 1.",
  },
  holdfast_runs_total: {
    type: "counter",
    of: "process",
    labels: ["job", "schedule", "outcome"],
    help: "Runs that ended here: completed, failed or cancelled.",
  },
  holdfast_attempts_total: {
    type: "counter",
    of: "process",
    labels: ["job", "end"],
    help: "Attempts that ended here without ending their run: failed, timeout, later, handed_back, suspended.",
  },
  holdfast_run_duration_seconds: {
    type: "histogram",
    of: "process",
    labels: ["job"],
    help: "How long the last attempt of a run that ended here took.",
  },
  holdfast_run_delay_seconds: {
    type: "histogram",
    of: "process",
    labels: ["job"],
    help: "From when a run was due, or the wait that it slept for ended, until its attempt began here, by the database's clock.",
  },
  holdfast_ticks_total: {
    type: "counter",
    of: "process",
    labels: ["schedule", "outcome", "reason"],
    help: "Ticks that this process recorded.",
  },
  holdfast_tick_lateness_seconds: {
    type: "histogram",
    of: "process",
    labels: ["schedule"],
    help: "How long after its time a tick was fired here.",
  },
  holdfast_tick_claims_total: {
    type: "counter",
    of: "process",
    labels: ["result"],
    help: "Due schedules that this process saw to first (won) or after another instance (lost).",
  },
  holdfast_claims_total: {
    type: "counter",
    of: "process",
    labels: ["result"],
    help: "Claims of runs that brought some (won) or found that others had taken them (lost).",
  },
  holdfast_claimed_runs_total: {
    type: "counter",
    of: "process",
    labels: [],
    help: "Runs that this process claimed.",
  },
  holdfast_lease_losses_total: {
    type: "counter",
    of: "process",
    labels: ["job"],
    help: "Runs that were taken from this process while it held them.",
  },
  holdfast_stale_results_total: {
    type: "counter",
    of: "process",
    labels: [],
    help: "Results that came too late and were refused.",
  },
  holdfast_reclaims_total: {
    type: "counter",
    of: "process",
    labels: ["job", "end"],
    help: "Runs that this process took from silent holders (lost) or from those over time (timeout).",
  },
  holdfast_items_failed_total: {
    type: "counter",
    of: "process",
    labels: ["job"],
    help: "Items that failed here.",
  },
  holdfast_locks_total: {
    type: "counter",
    of: "process",
    labels: ["result"],
    help: "Locks asked for here: acquired, taken_over (acquired from a holder whose lease ran out) or refused.",
  },
  holdfast_locks_lost_total: {
    type: "counter",
    of: "process",
    labels: [],
    help: "Locks that were lost while their function ran here.",
  },
  holdfast_lock_wait_seconds: {
    type: "histogram",
    of: "process",
    labels: [],
    help: "How long a call waited for the lock that it got.",
  },
  holdfast_lock_hold_seconds: {
    type: "histogram",
    of: "process",
    labels: [],
    help: "How long a lock was held until it was released.",
  },
  holdfast_store_failures_total: {
    type: "counter",
    of: "process",
    labels: ["what"],
    help: "Times that the database did not answer what this process asked.",
  },
  holdfast_access_total: {
    type: "counter",
    of: "process",
    labels: ["result"],
    help: "Over HTTP: sign-ins to the page (signed_in), and wrong secrets and callback tokens (refused).",
  },
  holdfast_worker_runs: {
    type: "gauge",
    of: "process",
    labels: [],
    help: "Runs that this process executes now.",
  },
  holdfast_worker_runs_max: {
    type: "gauge",
    of: "process",
    labels: [],
    help: "How many it may execute at the same time; 0: its worker is off.",
  },
  holdfast_poll_duration_seconds: {
    type: "histogram",
    of: "process",
    labels: [],
    help: "How long the database took to answer a poll.",
  },
  holdfast_event_loop_lag_seconds: {
    type: "histogram",
    of: "process",
    labels: [],
    help: "How much later than asked for the timer of a poll fired.",
  },
  holdfast_clock_skew_seconds: {
    type: "gauge",
    of: "process",
    labels: [],
    help: "How far this machine's clock is ahead of the database's, as of the last poll.",
  },
  holdfast_pool_connections: {
    type: "gauge",
    of: "process",
    labels: ["use"],
    help: "Connections that are open: held for good (work), or in a transaction of a handler (transaction).",
  },
  holdfast_pool_connections_max: {
    type: "gauge",
    of: "process",
    labels: ["use"],
    help: "How many of them there may be.",
  },
  holdfast_pool_statements: {
    type: "gauge",
    of: "process",
    labels: [],
    help: "Statements that were sent and not yet answered.",
  },
  holdfast_pool_waiting: {
    type: "gauge",
    of: "process",
    labels: [],
    help: "Transactions of handlers that wait for a connection.",
  },
  holdfast_database_up: {
    type: "gauge",
    of: "process",
    labels: [],
    help: "1: the database responded to this reading; 0: it did not, and the metrics from the database are missing.",
  },
  holdfast_queue_depth: {
    type: "gauge",
    of: "database",
    labels: ["queue", "state"],
    help: "Runs by queue: ready to be claimed, waiting for their time or a limit, running. Counted up to 100,000.",
  },
  holdfast_waits: {
    type: "gauge",
    of: "database",
    labels: ["for"],
    help: "Open waits of suspended runs: for a time (sleep), a signal, or the end of a called run (run). Counted up to 100,000.",
  },
  holdfast_instances: {
    type: "gauge",
    of: "database",
    labels: ["role"],
    help: "Live instances: with the scheduler on (scheduler), and all of them (any).",
  },
  holdfast_schedules: {
    type: "gauge",
    of: "database",
    labels: ["status"],
    help: "Schedules: active, paused, broken, ended.",
  },
  holdfast_schedules_overdue: {
    type: "gauge",
    of: "database",
    labels: [],
    help: "Schedules whose next tick is more than five minutes late: no instance fires them.",
  },
  holdfast_locks_held: {
    type: "gauge",
    of: "database",
    labels: [],
    help: "Locks that are held now, where they are kept in the database.",
  },
  holdfast_locks_waiting: {
    type: "gauge",
    of: "database",
    labels: [],
    help: "Calls that wait for a lock now, where locks are kept in the database.",
  },
  holdfast_runs_last_day: {
    type: "gauge",
    of: "database",
    labels: ["job", "outcome"],
    help: "Runs that ended in the last 24 hours (whole hours), over all instances.",
  },
  holdfast_success_ratio: {
    type: "gauge",
    of: "database",
    labels: ["job"],
    help: "Of those, completed of completed and failed, from 0 to 1; runs by hand, for tests and backfills left out.",
  },
} as const satisfies Readonly<Record<string, MetricInfo>>;

export type MetricName = keyof typeof METRICS;

export const METRIC_NAMES = Object.keys(METRICS) as readonly MetricName[];
