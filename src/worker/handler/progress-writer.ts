// Writes the progress of runs to the database for an instance: one statement for all runs, at most one write a second
// for a run unless its stage changes. An unavailable database delays progress and fails no run; only a lost
// lease rejects the call.

import {
  NO_PROGRESS,
  nextProgress,
  type Progress,
  type ProgressOptions,
  STAGES_MAX,
} from "../../runs/rules/progress.js";
import { LeaseLostError } from "../../shared/errors.js";
import { describeFailure } from "../../shared/failure.js";
import { type Clock, momentOf, type Timer } from "../../shared/ports.js";
import type { ProgressWrite } from "../../store/progress.js";
import type { Store } from "../../store/store.js";
import type { Emit } from "../../telemetry/log.js";
import type { AttemptView } from "../attempt-view.js";
import type { Renewed } from "../leases.js";

const EVERY_MS = 1_000;

type Entry = {
  readonly attempt: AttemptView;
  progress: Progress;
  reportedMs: number;
  readonly stages: { readonly stage: string; readonly atMs: number }[];
  writtenMs: number;
  isDirty: boolean;
  isUrgent: boolean;
  waiting: { readonly resolve: () => void; readonly reject: (error: Error) => void }[];
};

export class ProgressWriter {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #holder: number;
  readonly #executor: { renewed(renewed: Renewed): void };
  readonly #emit: Emit;
  readonly #entries = new Map<AttemptView, Entry>();
  #sending: Promise<void> | null = null;
  #timer: Timer | null = null;
  #isClosed = false;

  constructor(params: {
    readonly store: Store;
    readonly clock: Clock;
    readonly holder: number;
    /** A write of progress renews the lease as well. */
    readonly executor: { renewed(renewed: Renewed): void };
    readonly emit: Emit;
  }) {
    this.#store = params.store;
    this.#clock = params.clock;
    this.#holder = params.holder;
    this.#executor = params.executor;
    this.#emit = params.emit;
  }

  /** Resolves when it is stored, or at once if it can wait for the next write. */
  report(attempt: AttemptView, reported: ProgressOptions): Promise<void> {
    const entry = this.#entries.get(attempt) ?? newEntry(attempt);
    const progress = nextProgress(entry.progress, reported);
    const nowMs = this.#clock.monotonicMs();
    const isNewStage = progress.stage !== null && progress.stage !== entry.progress.stage;
    if (isNewStage && entry.stages.length < STAGES_MAX)
      entry.stages.push({ stage: progress.stage as string, atMs: nowMs });
    entry.isUrgent ||= isNewStage || nowMs - entry.writtenMs >= EVERY_MS;
    Object.assign(entry, { progress, reportedMs: nowMs, isDirty: true });
    attempt.hasReported = true;
    this.#entries.set(attempt, entry);
    if (!entry.isUrgent) {
      this.#sendWithin(entry.writtenMs + EVERY_MS - nowMs);
      return Promise.resolve();
    }
    const stored = new Promise<void>((resolve, reject) => entry.waiting.push({ resolve, reject }));
    // A caller that does not await the write learns of a loss by its signal, not by an unhandled rejection.
    stored.catch(() => undefined);
    // A microtask later, so that reports of the same moment share one statement.
    queueMicrotask(() => void this.#send());
    return stored;
  }

  /** The attempt is over: its last progress is stored now, if the database can be reached. */
  async finish(attempt: AttemptView): Promise<void> {
    const entry = this.#entries.get(attempt);
    if (!entry) return;
    await this.#sending;
    if (entry.isDirty) {
      entry.isUrgent = true;
      await this.#send();
    }
    this.forget(attempt);
  }

  forget(attempt: AttemptView): void {
    this.#entries.delete(attempt);
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#entries.clear();
  }

  #sendWithin(delayMs: number): void {
    if (this.#timer || this.#isClosed) return;
    this.#timer = this.#clock.timer(Math.max(1, delayMs), () => {
      this.#timer = null;
      void this.#send();
    });
  }

  async #send(): Promise<void> {
    while (this.#sending) await this.#sending;
    const nowMs = this.#clock.monotonicMs();
    const due = [...this.#entries.values()].filter(
      ({ isDirty, isUrgent, writtenMs }) => isDirty && (isUrgent || nowMs - writtenMs >= EVERY_MS),
    );
    if (due.length > 0 && !this.#isClosed) {
      this.#sending = this.#write(due);
      await this.#sending;
      this.#sending = null;
    }
    for (const { isDirty, writtenMs } of this.#entries.values())
      if (isDirty) this.#sendWithin(writtenMs + EVERY_MS - this.#clock.monotonicMs());
  }

  async #write(entries: readonly Entry[]): Promise<void> {
    const sentAt = momentOf(this.#clock);
    const writes = entries.map((entry) => writeOf(entry, sentAt.monotonicMs));
    const waiting = entries.map((entry) => entry.waiting);
    for (const entry of entries)
      Object.assign(entry, {
        isDirty: false,
        isUrgent: false,
        waiting: [],
        writtenMs: sentAt.monotonicMs,
      });
    try {
      const result = await this.#store.progress.write({ holder: this.#holder, writes });
      const asked = [...new Set(writes.map(({ fence }) => fence))];
      this.#executor.renewed({ sentAt, asked, ...result });
      const held = new Set(
        result.held.flatMap(({ fence, ids }) => ids.map((id) => `${id} ${fence}`)),
      );
      entries.forEach((entry, at) => {
        const { run, claim } = entry.attempt;
        const isUnknown = result.unknown.includes(claim.fence);
        if (isUnknown) entry.isDirty = true;
        const isLost = !isUnknown && !held.has(`${run.id} ${claim.fence}`);
        if (isLost) this.forget(entry.attempt);
        for (const { resolve, reject } of waiting[at] ?? [])
          if (isLost) reject(new LeaseLostError(run.id, claim.fence));
          else resolve();
      });
    } catch (error) {
      for (const entry of entries) entry.isDirty = true;
      for (const { resolve } of waiting.flat()) resolve();
      const facts = { what: "progress", error: describeFailure(error), retryInMs: EVERY_MS };
      this.#emit("store.failed", facts, error);
    }
  }
}

function newEntry(attempt: AttemptView): Entry {
  return {
    attempt,
    progress: NO_PROGRESS,
    reportedMs: 0,
    stages: [],
    writtenMs: Number.NEGATIVE_INFINITY,
    isDirty: false,
    isUrgent: false,
    waiting: [],
  };
}

function writeOf({ attempt, progress, reportedMs, stages }: Entry, nowMs: number): ProgressWrite {
  const agoMs = (atMs: number) => Math.max(0, Math.round(nowMs - atMs));
  return {
    id: attempt.run.id,
    fence: attempt.claim.fence,
    ...progress,
    agoMs: agoMs(reportedMs),
    stages: stages.map(({ stage, atMs }) => ({ stage, agoMs: agoMs(atMs) })),
  };
}
