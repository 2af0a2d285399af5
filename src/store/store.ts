// The store: what the engine asks of a database, in domain verbs, one parameters object each.
// The conformance suite (test/conformance) is its real definition. Expected outcomes are return
// values. Every time in here that decides something is the database's, never the caller's.

import type {
  AttemptEnd,
  Mode,
  Policy,
  RunId,
  RunStatus,
  TerminalStatus,
} from "../runs/rules/run.js";
import type { Limits } from "../worker/rules/limits.js";
import type { AccessStore } from "./access.js";
import type { AlertStore } from "./alerts.js";
import type { Audited, AuditStore } from "./audit.js";
import type { BatchVerbs, NewBatchOf } from "./batches.js";
import type { CheckStore } from "./checks.js";
import type { FiguresStore } from "./figures.js";
import type { ItemStore } from "./items.js";
import type { LimitStore } from "./limits.js";
import type { LockStore } from "./locks.js";
import type { LogStore } from "./logs.js";
import type { OperatorStore } from "./operators.js";
import type { GlobalPause, PauseStore } from "./pause.js";
import type { ProgressStore } from "./progress.js";
import type { RemoteStore } from "./remote.js";
import type { RepairStore } from "./repairs.js";
import type { RetentionStore } from "./retention.js";
import type { ScheduleStore } from "./schedule-store.js";
import type { TimelineStore } from "./timeline.js";

/** One lease: some runs of one lane and policy, at one attempt, granted to one holder under one fence. */
export type Claim = {
  readonly fence: number;
  readonly job: string;
  readonly queue: string;
  readonly attempt: number;
  readonly policy: Policy;
  /** What is left of the lease's length now: a lease never outlives the deadline of its runs. */
  readonly leaseMs: number;
  /** The earlier holder fell silent with this run: it is handed out alone. */
  readonly isSuspect: boolean;
  /** A limit let its runs through: their settlements have to say so. */
  readonly isLimited: boolean;
  readonly runs: readonly ClaimedRun[];
};

export type ClaimedRun = {
  readonly id: RunId;
  /** JSON text, as it was enqueued. */
  readonly input: string;
  readonly mode: Mode;
  readonly version: number;
  readonly priority: number;
  readonly createdAt: number;
  readonly dueAt: number;
  readonly nominalAt: number | null;
  /** The number of the schedule that made it. */
  readonly schedule: number | null;
  /** The number of the batch that it is a child of. */
  readonly batch: number | null;
  readonly tags: readonly string[];
  /** The W3C trace context of whoever asked for it. */
  readonly trace?: string;
  readonly refunds: number;
  readonly laters: number;
  readonly extraAttempts: number;
};

/** A run under the fence that its holder believes in. */
export type Grant = { readonly id: RunId; readonly fence: number };

/** What became of one held run. `ranMs`: how long ago its handler began, on the holder's clock. */
export type Settlement = Grant & {
  readonly mode: Mode;
  /** Of a run that a schedule made: its end may set the schedule's next tick. */
  readonly schedule: number | null;
  /** Of a child of a batch: its end counts there, and the last one makes the run that comes after. */
  readonly batch: number | null;
  /** As its claim said: what it held of a limit is given back, unless it goes straight back to ready. */
  readonly isLimited: boolean;
  readonly ranMs: number;
  readonly error: string | null;
} & (
    | { readonly to: TerminalStatus; readonly result: string | null }
    | {
        readonly to: "pending";
        readonly end: AttemptEnd;
        readonly delayMs: number;
        readonly isRefund: boolean;
      }
  );

export type NewRun = {
  readonly id: RunId;
  readonly job: string;
  readonly queue: string;
  readonly policy: Policy;
  readonly input: string;
  readonly mode: Mode;
  readonly version: number;
  readonly priority: number;
  /** Absolute where a user gave an instant, relative otherwise; neither: at once. */
  readonly dueAt: number | null;
  readonly delayMs: number;
  readonly tags: readonly string[];
  /** The W3C trace context of whoever asks for it. */
  readonly trace?: string | undefined;
  readonly key: NewKey | null;
  /** Of a limited job: the key that it waits under (worker/rules/limits.ts). */
  readonly flow?: string | undefined;
};

/** The idempotency key of a run: lives for as long as the run, unless told otherwise. */
export type NewKey = {
  readonly key: string;
  readonly inputHash: string;
  /** For so long, or until its run has ended. */
  readonly lastsMs?: number | "live" | undefined;
  /** What a taken key does to its run while that has not begun; once it has, this run takes the key. */
  readonly onDuplicate?: "replace" | "postpone" | undefined;
  /** The run's new time is no later than this after the run was enqueued. */
  readonly maxWaitMs?: number | undefined;
};

export type EnqueueParams = {
  readonly runs: readonly NewRun[];
  /** All or none, also when one of the keys is taken by another input. */
  readonly isAtomic: boolean;
  /** Wakes other processes right after the commit. */
  readonly tellsOthers: boolean;
};

export type EnqueueAnswer =
  | { readonly id: RunId; readonly deduplicated: boolean }
  | { readonly conflict: RunId };

export type WithinParams = {
  /** The caller's open transaction, an object of the caller's database library. */
  readonly tx: unknown;
  readonly runs: readonly NewRun[];
};

export type JobAnnouncement = {
  readonly name: string;
  readonly queue: string;
  readonly priority: number;
  readonly version: number;
  readonly policy: Policy;
  /** Left out: none. */
  readonly limits?: Limits;
  /** What an input looks like, as JSON Schema in JSON text. Left out or null: nobody knows. */
  readonly inputSchema?: string | null;
};

export type InstanceAnnouncement = {
  readonly instanceId: string;
  readonly app: string | null;
  readonly release: string | null;
  readonly jobs: readonly JobAnnouncement[];
  /** Names of the schedules that its code declares. */
  readonly schedules: readonly string[];
  readonly isScheduler: boolean;
  /** What it executes. Left out: nothing. */
  readonly works?: Appetite;
  /** It counts as gone when it was not seen for several of these. */
  readonly pollMs: number;
};

/** A remote worker that takes part as an instance. */
export type RemoteAnnouncement = {
  readonly instanceId: string;
  /** Whose credential it came with: the name is that owner's while it lives. */
  readonly by: string;
  readonly works: Appetite;
  readonly pollMs: number;
};

/** What this instance may claim: its jobs, in these queues (all where null). */
export type Appetite = {
  readonly jobs: readonly string[];
  readonly queues: readonly string[] | null;
};

export type ExchangeParams = Appetite & {
  readonly holder: number;
  /** Read back by it if the answer to this exchange is lost. */
  readonly token: string;
  /** The token is a name that its caller repeats: nothing is claimed twice under it, what is held is the answer. */
  readonly isNamed?: boolean;
  readonly settlements: readonly Settlement[];
  /** The settlements are of all the runs of one lease, in the order in which its claim named them. */
  readonly isWholeLease?: boolean;
  /** How many runs to claim at most; 0 settles only. */
  readonly limit: number;
  /** Take one suspect instead, by itself. */
  readonly wantsSuspect: boolean;
  /** For what the end of a run draws. */
  readonly chance: number;
  /** Of these jobs every run gets a lease of its own: somebody else will renew and end it. */
  readonly apart?: readonly string[];
  /** Whether runs that wait for a limit are claimed too, and who has the first choice of the room. */
  readonly limited?: "first" | "last";
};

export type ExchangeAnswer = {
  readonly claims: readonly Claim[];
  /** Settlements that changed nothing, since their fence is no longer the current one. */
  readonly stale: readonly Grant[];
  /** A settlement ended the last child of a batch: the run that comes after it is ready. */
  readonly hasContinued: boolean;
  /** Runs wait for the window of a rate; so long until one of them may begin. */
  readonly limitedInMs?: number | null;
};

export type RenewParams = {
  readonly holder: number;
  readonly fences: readonly number[];
  /** An answer that takes longer is too late to be trusted. */
  readonly timeoutMs?: number;
};

export type Renewal = {
  readonly fence: number;
  /** Length of the lease from the renewal on. */
  readonly leaseMs: number;
  readonly ids: readonly RunId[];
};

export type RenewAnswer = {
  readonly held: readonly Renewal[];
  /** Locked by somebody at this moment: neither renewed nor lost; ask again. */
  readonly unknown: readonly number[];
};

export type PollParams = Appetite & {
  readonly holder: number;
  /** Whether this instance fires schedules. */
  readonly isScheduler: boolean;
  /** Whether it wants to know when somebody polled, though no schedule may be due. @default false */
  readonly wantsLastPoll?: boolean;
};

export type PollAnswer = {
  readonly now: number;
  readonly hasReady: boolean;
  readonly hasSuspect: boolean;
  /** A limit may let a run through. */
  readonly hasLimited: boolean;
  readonly hasDue: boolean;
  readonly hasExpired: boolean;
  /** A tick is due, or a schedule waits for a look. Always false where the scheduler is off. */
  readonly hasDueSchedule: boolean;
  /**
   * A gate is free, a run is to be replaced or a backfill goes on: anyone may see to it, as no tick is fired by that.
   * Always false where the scheduler is on, for which it is part of `hasDueSchedule`.
   */
  readonly hasFreeGate: boolean;
  /** Runs are gated: whoever ends a run of a schedule should look again. */
  readonly hasGated: boolean;
  /**
   * When any instance with the scheduler on had polled before this poll. Null, too, where no schedule is due and it
   * was not wanted: all instances of the past are looked through for it, and most polls do nothing with it.
   */
  readonly lastPolledAt: number | null;
  /** A running run was told to stop so long ago that its holder is not waited for any longer. */
  readonly hasOverdueCancel: boolean;
  /** Held runs that somebody asked to cancel. */
  readonly cancelRequested: readonly RunId[];
  /** When the next waiting run or tick becomes due, by the database's clock. */
  readonly nextWakeAt: number | null;
  /** It may claim and fire nothing; then nothing is said to be ready or due to be fired either. */
  readonly halt: GlobalPause | null;
};

export type Reclaimed = Grant & {
  readonly job: string;
  readonly attempt: number;
  readonly holder: string;
  readonly end: "lost" | "timeout";
  readonly to: RunStatus;
};

export type RunRecord = {
  readonly id: RunId;
  readonly job: string;
  readonly queue: string;
  readonly status: RunStatus;
  readonly mode: Mode;
  readonly priority: number;
  readonly attempt: number;
  readonly attemptsMax: number;
  readonly fence: number | null;
  readonly input: string;
  readonly result: string | null;
  readonly error: string | null;
  readonly schedule: string | null;
  /** The run that made it. */
  readonly parent: RunId | null;
  readonly nominalAt: number | null;
  readonly createdAt: number;
  readonly dueAt: number;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
  readonly updatedAt: number;
  readonly heartbeatAt: number | null;
  readonly holder: string | null;
  readonly leaseUntil: number | null;
  readonly key: string | null;
  readonly tags: readonly string[];
  /** The W3C trace context of whoever asked for it. */
  readonly trace?: string;
  readonly cancelRequestedAt: number | null;
  /** How many items it has, by outcome. */
  readonly items: Readonly<Record<string, number>>;
  /** Of the last one of a list that is shorter than was asked for, as it has all the bytes that a page may have: more follow. */
  readonly isFollowed?: boolean;
};

export type AttemptRecord = {
  readonly attempt: number;
  readonly fence: number;
  readonly holder: string;
  readonly end: AttemptEnd | TerminalStatus;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly error: string | null;
};

export type RunFilter = {
  readonly status?: RunStatus;
  readonly job?: string;
  readonly schedule?: string;
  readonly mode?: Mode;
  readonly tag?: string;
  readonly text?: string;
  /** Newest first; continues after this id. */
  readonly before?: RunId;
  /** None whose id is smaller. */
  readonly since?: RunId;
  readonly limit: number;
};

export type CancelAnswer = "cancelled" | "requested" | "already_terminal" | "not_found";
export type RetryAnswer = "pending" | "not_terminal" | "completed" | "not_found";

export type NewBatch = NewBatchOf<NewRun>;
export type BatchStore = BatchVerbs<NewRun, EnqueueAnswer, RunRecord>;

/**
 * Tells that something may have changed; only a hint, never needed for correctness. `isOwn`: this store did
 * it, whose instance knows already.
 */
export type WakeListener = (hint: { readonly isOwn: boolean }) => void;

export interface Store
  extends ScheduleStore,
    LimitStore,
    LockStore,
    BatchStore,
    ItemStore<Settlement>,
    ProgressStore,
    LogStore,
    OperatorStore,
    CheckStore,
    RepairStore,
    RetentionStore,
    AlertStore,
    PauseStore,
    AuditStore,
    AccessStore,
    TimelineStore,
    FiguresStore,
    RemoteStore<Claim> {
  /** How many connections it opens at most, all it does taken together. */
  readonly connectionsMax: number;
  /** "sqlite" or "postgres"; for messages. */
  readonly engine: "sqlite" | "postgres";

  /** Connects, checks the engine and brings the schema up to date. Safe from many instances at once. */
  open(): Promise<void>;
  /** With `releasesFiles` no file is open afterwards, also where a library would keep it until it is collected. */
  close(options?: { readonly releasesFiles: boolean }): Promise<void>;

  /** Writes this instance and its jobs down; answers with the number that names it as a holder. */
  announce(params: InstanceAnnouncement): Promise<number>;
  /** The number of a remote worker's instance; null where a live instance of another owner has the name. */
  announceRemote(params: RemoteAnnouncement): Promise<number | null>;
  /** Those of these jobs that live instances of the library execute or send to a target. */
  localJobs(names: readonly string[]): Promise<readonly string[]>;
  /** Writes jobs down without an instance: for schedules that are made where nothing was started. */
  announceJobs(jobs: readonly JobAnnouncement[]): Promise<void>;
  /** Jobs as the newest instance announced them. */
  announcedJobs(): Promise<readonly JobAnnouncement[]>;
  /** The instance is gone in good order. */
  retire(params: { readonly holder: number }): Promise<void>;

  /**
   * Stores new runs. The same id twice is the same run: a repeated call after a lost answer changes
   * nothing. A key that is taken answers with its run, or with a conflict; if `isAtomic`, a conflict
   * stores nothing of the call.
   */
  enqueue(params: EnqueueParams): Promise<readonly EnqueueAnswer[]>;

  /**
   * Stores new runs in the caller's transaction, all or none: they are there when the caller commits.
   * A key that is taken by another input answers with a conflict, stores nothing of the call, and
   * leaves the transaction usable.
   */
  enqueueWithin(params: WithinParams): Promise<readonly EnqueueAnswer[]>;
  /** The same without waiting for anything; on SQLite alone, and only once the store is open. */
  enqueueWithinSync(params: WithinParams): readonly EnqueueAnswer[];

  /**
   * Settles what has ended and claims what is next, in one commit. Settlements take effect only
   * under the current fence; claims are disjoint from all others and never more than `limit`.
   */
  exchange(params: ExchangeParams): Promise<ExchangeAnswer>;
  /** The claims made under this token that still stand: for a claim whose answer was lost. */
  claimsByToken(params: {
    readonly holder: number;
    readonly token: string;
  }): Promise<readonly Claim[]>;

  /** Renews leases, expired ones too if nobody took them. */
  renew(params: RenewParams): Promise<RenewAnswer>;
  /** Stores that these runs have begun, before they do; answers which are still held. */
  markStarted(grants: readonly Grant[]): Promise<readonly Grant[]>;

  /** One statement: what is there to do, and that this instance lives. */
  poll(params: PollParams): Promise<PollAnswer>;
  /** Moves due runs from waiting to ready; answers how many. */
  promote(params: { readonly limit: number }): Promise<number>;
  /** Takes runs from holders that fell silent or over time, by the policy stored with each. */
  reclaim(params: {
    readonly limit: number;
    readonly chance: number;
  }): Promise<readonly Reclaimed[]>;
  /** Ends running runs whose cancel was not obeyed in time. */
  enforceCancels(params: {
    readonly graceMs: number;
    readonly chance: number;
  }): Promise<readonly Grant[]>;

  cancel(params: { readonly id: RunId; readonly chance: number } & Audited): Promise<CancelAnswer>;
  /** For runs that no schedule made; the others are revived under their schedule's row. */
  retry(params: { readonly id: RunId } & Audited): Promise<RetryAnswer>;
  /** Removes a terminal run and all that belongs to it. */
  remove(
    params: { readonly id: RunId } & Audited,
  ): Promise<"removed" | "not_terminal" | "not_found">;

  run(id: RunId): Promise<RunRecord | null>;
  runs(filter: RunFilter): Promise<readonly RunRecord[]>;
  /**
   * Ids that begin with these digits, and ids among the newest 20,000 runs that end with them. The beginning is a range of
   * the primary key; no index has the end, so the look at it is bounded.
   */
  runsLike(params: { readonly digits: string; readonly limit: number }): Promise<readonly RunId[]>;
  attempts(id: RunId): Promise<readonly AttemptRecord[]>;
  /** Of these, the ones that are terminal. */
  terminal(ids: readonly RunId[]): Promise<readonly RunId[]>;

  /** Calls back when another process may have made work. Answers with how to stop. */
  onWake(listener: WakeListener): () => void;
  /** Tells other processes that there may be work; the caller sees to it that it is not too often. */
  wake(): void;
}
