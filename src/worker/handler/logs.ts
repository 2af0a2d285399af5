// Writes the log lines of handlers, `ctx.log`: each line goes to the instance's logger, and is kept with the run if its
// policy says so. A line is a message, fields and a message, or an error and a message.

import {
  droppedLine,
  isKept,
  keptFields,
  keptMessage,
  LOG_CHARS_MAX,
} from "../../runs/rules/run-logs.js";
import { describeFailure } from "../../shared/failure.js";
import { hideSecrets, hideSecretsIn } from "../../shared/known-secrets.js";
import type { Clock, Timer } from "../../shared/ports.js";
import type { LogLine } from "../../store/logs.js";
import type { Store } from "../../store/store.js";
import type { Emit, Logger } from "../../telemetry/log.js";
import type { AttemptView } from "../attempt-view.js";

export type RunLogLine = {
  (message: string): void;
  (fields: object, message?: string): void;
};

/** The logger of one attempt. */
export type RunLog = {
  readonly debug: RunLogLine;
  readonly info: RunLogLine;
  readonly warn: RunLogLine;
  readonly error: RunLogLine;
};

export type RunLogLevel = keyof RunLog;

export function runLog(params: {
  readonly logger: Logger;
  /** Added to every line for the logger. */
  readonly fields: object;
  readonly keep: (level: RunLogLevel, fields: object, message: string) => void;
}): RunLog {
  const { logger, keep } = params;
  const at = (level: RunLogLevel): RunLogLine => {
    return (first: string | object, second?: string) => {
      const { fields, message } = lineOf(first, second);
      keep(level, fields, message);
      try {
        logger[level]({ ...params.fields, ...hideSecretsIn(fields) }, hideSecrets(message));
      } catch {
        // A failing logger must not fail the run.
      }
    };
  };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

/** Reads a line as pino does: an error without a message gives its own message. */
function lineOf(first: unknown, second: unknown): { fields: object; message: string } {
  if (typeof first !== "object" || first === null) return { fields: {}, message: String(first) };
  const fields = first instanceof Error ? { err: first } : first;
  if (second !== undefined) return { fields, message: String(second) };
  return { fields, message: first instanceof Error ? String(first.message) : "" };
}

// ── kept lines ───────────────────────────────────────────────────────────────────────────────────
// Stores log lines with their runs: one statement for the lines of all runs, at most a second after the first of them,
// and before an attempt is settled. Each attempt keeps a bounded number of lines; a last line says how many were
// dropped. A failure to store lines fails no run: lines that are not stored by the end of their attempt are dropped.

const EVERY_MS = 1_000;
/** This many lines are sent at once, without waiting. */
const LINES_WAITING_MAX = 500;
/** A larger statement would block the event loop, or be refused by drivers and servers. */
const LINES_SENT_MAX = 2_000;

type Line = Omit<LogLine, "agoMs"> & { readonly atMs: number };

type Entry = {
  readonly attempt: AttemptView;
  /** Not stored yet. */
  lines: Line[];
  count: number;
  chars: number;
  dropped: number;
  /** The count of dropped lines in the last line that was sent about them. */
  droppedSent: number;
};

export class LogWriter {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #holder: number;
  readonly #emit: Emit;
  readonly #byAttempt = new Map<AttemptView, Entry>();
  #waiting = 0;
  #sending: Promise<void> | null = null;
  #timer: Timer | null = null;
  #isClosed = false;

  constructor(params: {
    readonly store: Store;
    readonly clock: Clock;
    readonly holder: number;
    readonly emit: Emit;
  }) {
    this.#store = params.store;
    this.#clock = params.clock;
    this.#holder = params.holder;
    this.#emit = params.emit;
  }

  keep(attempt: AttemptView, level: RunLogLevel, fields: object, message: string): void {
    const { max } = attempt.logs;
    if (this.#isClosed || !isKept(level, attempt.logs)) return;
    const entry = this.#byAttempt.get(attempt) ?? newEntry(attempt);
    this.#byAttempt.set(attempt, entry);
    attempt.hasReported = true;
    if (entry.dropped > 0 || entry.count >= max || entry.chars >= LOG_CHARS_MAX) entry.dropped += 1;
    else this.#write(entry, level, keptMessage(message), keptFields(fields));
    if (this.#waiting >= LINES_WAITING_MAX) void this.#send();
    else this.#sendWithin(EVERY_MS);
  }

  /** The attempt is over: its lines are stored now, or dropped. */
  async finish(attempt: AttemptView): Promise<void> {
    const entry = this.#byAttempt.get(attempt);
    if (!entry) return;
    await this.#sending;
    if (entry.lines.length > 0 || entry.dropped > entry.droppedSent) await this.#send();
    this.forget(attempt);
  }

  forget(attempt: AttemptView): void {
    this.#waiting -= this.#byAttempt.get(attempt)?.lines.length ?? 0;
    this.#byAttempt.delete(attempt);
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#byAttempt.clear();
  }

  #write(entry: Entry, level: RunLogLevel, message: string, fields: string | null): void {
    const { run, claim } = entry.attempt;
    entry.count += 1;
    entry.chars += message.length + (fields?.length ?? 0);
    const atMs = this.#clock.monotonicMs();
    entry.lines.push({
      id: run.id,
      fence: claim.fence,
      no: entry.count,
      level,
      atMs,
      message,
      fields,
    });
    this.#waiting += 1;
  }

  #sendWithin(delayMs: number): void {
    if (this.#timer || this.#isClosed) return;
    this.#timer = this.#clock.timer(delayMs, () => {
      this.#timer = null;
      void this.#send();
    });
  }

  async #send(): Promise<void> {
    while (this.#sending) await this.#sending;
    const taken = this.#take();
    if (taken.length === 0 || this.#isClosed) return;
    this.#sending = this.#append(taken);
    await this.#sending;
    this.#sending = null;
    if (this.#waiting > 0) this.#sendWithin(EVERY_MS);
  }

  /** Sends the line about dropped lines again if their count has grown. */
  #take(): { readonly entry: Entry; readonly lines: readonly Line[] }[] {
    const taken: { readonly entry: Entry; readonly lines: readonly Line[] }[] = [];
    let count = 0;
    for (const entry of this.#byAttempt.values()) {
      if (count >= LINES_SENT_MAX) break;
      const lines = entry.lines;
      entry.lines = [];
      this.#waiting -= lines.length;
      if (entry.dropped > entry.droppedSent) {
        lines.push(markerOf(entry, this.#clock.monotonicMs()));
        entry.droppedSent = entry.dropped;
      }
      if (lines.length > 0) taken.push({ entry, lines });
      count += lines.length;
    }
    return taken;
  }

  async #append(taken: readonly { readonly entry: Entry; readonly lines: readonly Line[] }[]) {
    const nowMs = this.#clock.monotonicMs();
    const lines = taken
      .flatMap((each) => each.lines)
      .map(({ atMs, ...line }) => ({ ...line, agoMs: Math.max(0, Math.round(nowMs - atMs)) }));
    try {
      // The store refuses lines of lost runs: the current holder writes the log of such a run.
      await this.#store.logs.append({ holder: this.#holder, lines });
    } catch (error) {
      for (const each of taken) this.#putBack(each);
      const retryInMs = EVERY_MS;
      const facts = { what: "log lines of runs", error: describeFailure(error), retryInMs };
      this.#emit("store.failed", facts, error);
    }
  }

  #putBack({ entry, lines }: { readonly entry: Entry; readonly lines: readonly Line[] }): void {
    if (this.#byAttempt.get(entry.attempt) !== entry) return;
    const own = lines.filter(({ no }) => no <= entry.count);
    if (own.length < lines.length) entry.droppedSent = 0;
    entry.lines = [...own, ...entry.lines];
    this.#waiting += own.length;
  }
}

function newEntry(attempt: AttemptView): Entry {
  return { attempt, lines: [], count: 0, chars: 0, dropped: 0, droppedSent: 0 };
}

function markerOf({ attempt, count, dropped }: Entry, atMs: number): Line {
  const { run, claim } = attempt;
  const line = droppedLine({ dropped });
  return { id: run.id, fence: claim.fence, no: count + 1, level: "warn", atMs, ...line };
}
