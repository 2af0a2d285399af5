// Declares the store: the verbs that a database must provide, grouped by noun. The file of each noun declares its verbs. The
// conformance suite (test/conformance) is their full definition. Expected outcomes are return values. A time that decides
// something is always the database's, never the caller's.

import type { LockProvider } from "../locks/rules/lock.js";
import type { AccessKeys } from "./access/keys.js";
import type { Sessions } from "./access/sessions.js";
import type { Alerts } from "./alerts/alerts.js";
import type { Audit } from "./audit.js";
import type { Batches } from "./batches.js";
import type { Checks } from "./checks/checks.js";
import type { Repairs } from "./checks/repairs.js";
import type { ClaimVerbs } from "./claims.js";
import type { CommitVerbs } from "./commits.js";
import type { EnqueueVerbs } from "./enqueue.js";
import type { Instances } from "./instances.js";
import type { Items } from "./items.js";
import type { Jobs } from "./jobs.js";
import type { LeaseVerbs } from "./leases.js";
import type { Logs } from "./logs.js";
import type { Pauses } from "./pause.js";
import type { Progress } from "./progress.js";
import type { Queues } from "./queues.js";
import type { Retention } from "./retention.js";
import type { Runs } from "./runs/runs.js";
import type { Calendars } from "./schedules/calendars.js";
import type { Schedules } from "./schedules/schedules.js";
import type { Signals } from "./signals.js";
import type { Statistics } from "./statistics.js";
import type { Steps } from "./steps.js";
import type { WorkVerbs } from "./work.js";

/**
 * Called when there may be new work. It is only a hint and never needed for correctness. `isOwn`: this store made the change,
 * so its instance knows already.
 */
export type WakeListener = (hint: { readonly isOwn: boolean }) => void;

type StoreLoad = {
  /** Statements in flight. */
  readonly statements: number;
  /** Connections that the store keeps open. */
  readonly work: number;
  readonly workMax: number;
  /** Connections with an open transaction of a handler. */
  readonly transactions: number;
  readonly transactionsMax: number;
  /** Transactions of handlers that wait for a connection. */
  readonly waiting: number;
};

export interface Store {
  readonly enqueue: EnqueueVerbs;
  readonly claims: ClaimVerbs;
  readonly leases: LeaseVerbs;
  readonly work: WorkVerbs;
  readonly items: Items;
  readonly commits: CommitVerbs;
  readonly locks: LockProvider;
  readonly alerts: Alerts;
  readonly audit: Audit;
  readonly batches: Batches;
  readonly calendars: Calendars;
  readonly checks: Checks;
  readonly instances: Instances;
  readonly jobs: Jobs;
  readonly keys: AccessKeys;
  readonly logs: Logs;
  readonly pause: Pauses;
  readonly progress: Progress;
  readonly queues: Queues;
  readonly repairs: Repairs;
  readonly retention: Retention;
  readonly runs: Runs;
  readonly schedules: Schedules;
  readonly sessions: Sessions;
  readonly signals: Signals;
  readonly steps: Steps;
  readonly statistics: Statistics;
  /** The largest number of connections that the store opens. */
  readonly connectionsMax: number;
  readonly engine: "sqlite" | "postgres";
  /** What this store has open now; sends no statement. */
  readonly load: StoreLoad;

  /** Connects, checks the engine's version and migrates the schema. Many instances may do this at the same time. */
  open(): Promise<void>;
  /** With `releasesFiles` no file stays open, even if the library would keep it until garbage is collected. */
  close(options?: { readonly releasesFiles: boolean }): Promise<void>;

  /** Calls the listener when another process may have made work. Returns a function that stops it. */
  onWake(listener: WakeListener): () => void;
  /** Tells other processes that there may be work. The caller limits how often. */
  wake(): void;
}
