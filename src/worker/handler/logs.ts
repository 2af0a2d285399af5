// `ctx.log`: every line goes to the instance's logger, and is kept with the run where that is wanted.
// Takes what people write: a message, fields and a message, an error and a message.

import {
  droppedLine,
  isKept,
  keptFields,
  keptMessage,
  LOG_CHARS_MAX,
} from "../../runs/rules/run-logs.js";
import { hideSecrets, hideSecretsIn } from "../../shared/known-secrets.js";
import type { Clock, Timer } from "../../shared/ports.js";
import type { LogLine } from "../../store/logs.js";
import type { Store } from "../../store/store.js";
import type { Logger } from "../../telemetry/log.js";
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
  /** What every line to the logger carries. */
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
        // A logger that fails must not take the run down with it.
      }
    };
  };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

/** As pino reads it: an error alone is its own message. */
function lineOf(first: unknown, second: unknown): { fields: object; message: string } {
  if (typeof first !== "object" || first === null) return { fields: {}, message: String(first) };
  const fields = first instanceof Error ? { err: first } : first;
  if (second !== undefined) return { fields, message: String(second) };
  return { fields, message: first instanceof Error ? String(first.message) : "" };
}

// Log lines of the runs of an instance, on their way to the database: one statement for the lines of all
// runs, a second after the first of them at the latest, and before an attempt is settled. Bounded for
// each attempt; what is too much is counted and said in a last line. Fails nobody: lines that cannot be
// stored by the end of their attempt are let go.

const EVERY_MS = 1_000;
/** So many lines do not wait. */
const LINES_WAITING_MAX = 500;
/** A statement of more would keep the event loop, or be refused by drivers and servers. */
const LINES_SENT_MAX = 2_000;

type Line = Omit<LogLine, "agoMs"> & { readonly atMs: number };

type Book = {
  readonly attempt: AttemptView;
  /** Not stored yet. */
  lines: Line[];
  count: number;
  chars: number;
  dropped: number;
  /** How many were dropped when that was said last. */
  said: number;
};

export class LogKeeper {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #holder: number;
  readonly #onFailed: (error: unknown, retryInMs: number) => void;
  readonly #books = new Map<AttemptView, Book>();
  #waiting = 0;
  #sending: Promise<void> | null = null;
  #timer: Timer | null = null;
  #isClosed = false;

  constructor(params: {
    readonly store: Store;
    readonly clock: Clock;
    readonly holder: number;
    readonly onFailed: (error: unknown, retryInMs: number) => void;
  }) {
    this.#store = params.store;
    this.#clock = params.clock;
    this.#holder = params.holder;
    this.#onFailed = params.onFailed;
  }

  keep(attempt: AttemptView, level: RunLogLevel, fields: object, message: string): void {
    const { max } = attempt.logs;
    if (this.#isClosed || !isKept(level, attempt.logs)) return;
    const book = this.#books.get(attempt) ?? newBook(attempt);
    this.#books.set(attempt, book);
    attempt.hasReported = true;
    if (book.dropped > 0 || book.count >= max || book.chars >= LOG_CHARS_MAX) book.dropped += 1;
    else this.#write(book, level, keptMessage(message), keptFields(fields));
    if (this.#waiting >= LINES_WAITING_MAX) void this.#send();
    else this.#sendWithin(EVERY_MS);
  }

  /** The attempt is over: what it said is stored now, or never. */
  async finish(attempt: AttemptView): Promise<void> {
    const book = this.#books.get(attempt);
    if (!book) return;
    await this.#sending;
    if (book.lines.length > 0 || book.dropped > book.said) await this.#send();
    this.forget(attempt);
  }

  forget(attempt: AttemptView): void {
    this.#waiting -= this.#books.get(attempt)?.lines.length ?? 0;
    this.#books.delete(attempt);
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#books.clear();
  }

  #write(book: Book, level: RunLogLevel, message: string, fields: string | null): void {
    const { run, claim } = book.attempt;
    book.count += 1;
    book.chars += message.length + (fields?.length ?? 0);
    const atMs = this.#clock.monotonicMs();
    book.lines.push({
      id: run.id,
      fence: claim.fence,
      no: book.count,
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

  /** The line that says how much was dropped is written anew whenever it is more. */
  #take(): { readonly book: Book; readonly lines: readonly Line[] }[] {
    const taken: { readonly book: Book; readonly lines: readonly Line[] }[] = [];
    let count = 0;
    for (const book of this.#books.values()) {
      if (count >= LINES_SENT_MAX) break;
      const lines = book.lines;
      book.lines = [];
      this.#waiting -= lines.length;
      const isMore = book.dropped > book.said;
      if (isMore) {
        lines.push(markerOf(book, this.#clock.monotonicMs()));
        book.said = book.dropped;
      }
      if (lines.length > 0) taken.push({ book, lines });
      count += lines.length;
    }
    return taken;
  }

  async #append(taken: readonly { readonly book: Book; readonly lines: readonly Line[] }[]) {
    const nowMs = this.#clock.monotonicMs();
    const lines = taken
      .flatMap((each) => each.lines)
      .map(({ atMs, ...line }) => ({ ...line, agoMs: Math.max(0, Math.round(nowMs - atMs)) }));
    try {
      // Refused lines belong to runs that were lost: whoever holds them now writes their log.
      await this.#store.appendLogs({ holder: this.#holder, lines });
    } catch (error) {
      for (const each of taken) this.#putBack(each);
      this.#onFailed(error, EVERY_MS);
    }
  }

  #putBack({ book, lines }: { readonly book: Book; readonly lines: readonly Line[] }): void {
    if (this.#books.get(book.attempt) !== book) return;
    const own = lines.filter(({ no }) => no <= book.count);
    if (own.length < lines.length) book.said = 0;
    book.lines = [...own, ...book.lines];
    this.#waiting += own.length;
  }
}

function newBook(attempt: AttemptView): Book {
  return { attempt, lines: [], count: 0, chars: 0, dropped: 0, said: 0 };
}

function markerOf({ attempt, count, dropped }: Book, atMs: number): Line {
  const { run, claim } = attempt;
  const line = droppedLine({ dropped });
  return { id: run.id, fence: claim.fence, no: count + 1, level: "warn", atMs, ...line };
}
