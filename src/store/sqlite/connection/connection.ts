// Sends statements to one SQLite file: write transactions that never block the event loop, snapshots, and a hint when
// another process wrote.

import type { FSWatcher } from "node:fs";
import { resolve as resolvePath } from "node:path";
import { collectGarbage } from "../../../shared/adapters/garbage.js";
import { StoreReadOnlyError, StoreUnavailableError } from "../../../shared/errors.js";
import { type Clock, delay, type Random } from "../../../shared/ports.js";
import { type Dialect, type FilledStatement, overRows, unnamed } from "../../sql/template.js";
import {
  busyTimeoutMs,
  checkVersion,
  describeOpening,
  fileOf,
  isInTransaction,
  isOpenTransaction,
  NO_WAITING,
  nameOf,
  openFile,
  RESULT_CODES,
  type SqliteHandle,
  SqlitePlace,
  type SqliteSource,
  sqliteCode,
} from "./handle.js";

export type Row = Record<string, unknown>;

type Prepared = {
  readonly parameters: readonly string[];
  readonly statement: ReturnType<SqliteHandle["prepare"]>;
};

type SqliteParams = {
  readonly source: SqliteSource;
  readonly clock: Clock;
  readonly random: Random;
  readonly synchronous: "FULL" | "NORMAL";
  /** Whether a missing file may be created. */
  readonly mayCreate: boolean;
  readonly dialect: Dialect;
};
const BUSY_RETRIED_FOR_MS = 30_000;
/** A write checks that the file is in its place if this much time has passed since the last check. */
const LOOK_EVERY_MS = 1_000;

export class SqliteFile {
  readonly #params: SqliteParams;
  readonly #prepared = new Map<string, Prepared>();
  #handle: SqliteHandle | null = null;
  /** How long statements of the owner of a given handle wait for a lock; null for a handle of ours. */
  #ownersTimeoutMs: number | null = null;
  #watcher: FSWatcher | null = null;
  /** Null before the opening, and for databases that are no file. */
  #place: SqlitePlace | null = null;
  #lookedMs = 0;
  /** Calls that wait for a turn of the event loop before they begin. */
  #waitingCount = 0;

  constructor(params: SqliteParams) {
    this.#params = params;
  }

  async open(): Promise<void> {
    const { source, synchronous } = this.#params;
    const handle =
      "handle" in source ? source.handle : await openFile(source.file, this.#params.mayCreate);
    try {
      if ("handle" in source) this.#ownersTimeoutMs = busyTimeoutMs(handle);
      else handle.exec(NO_WAITING);
      await this.#whileBusy("open", handle, () => {
        // Inside the retry: any read can meet the lock of another process that is just opening.
        checkVersion(handle);
        if ("file" in source) handle.exec("pragma journal_mode = wal");
        handle.exec(`pragma synchronous = ${synchronous}`);
        handle.exec("pragma journal_size_limit = 67108864");
      });
      const file = "file" in source ? source.file : fileOf(handle);
      const isFile = file !== "" && file !== ":memory:";
      this.#place = isFile ? await SqlitePlace.of(resolvePath(file)) : null;
      this.#lookedMs = this.#params.clock.monotonicMs();
      this.#handle = handle;
    } catch (error) {
      if ("file" in source) handle.close();
      throw describeOpening(error, source);
    }
  }

  /** Throws `StoreGoneError` if the file was deleted, moved or replaced since it was opened. */
  look(): void {
    this.#lookedMs = this.#params.clock.monotonicMs();
    this.#place?.look();
  }

  #lookAfterPause(): void {
    if (this.#params.clock.monotonicMs() - this.#lookedMs >= LOOK_EVERY_MS) this.look();
  }

  async close({ releasesFiles = false } = {}): Promise<void> {
    const { clock, source } = this.#params;
    while (this.#waitingCount > 0) await new Promise<void>((resolve) => clock.soon(resolve));
    this.#watcher?.close();
    this.#watcher = null;
    this.#prepared.clear();
    const handle = this.#handle;
    this.#handle = null;
    if (!handle || !("file" in source)) return;
    // The -wal file at that path may belong to the new file.
    if (!this.#place?.gone?.isReplaced) moveIntoFile(handle);
    handle.close();
    // The library's prepared statements keep the files of a closed handle open until they are collected.
    if (releasesFiles && source.file !== ":memory:") await collectGarbage();
  }

  /**
   * Runs `work` in a write transaction. It is synchronous: no other code of this process can run in between, and the
   * file is held for a few milliseconds only. An urgent one begins without waiting for a turn.
   */
  write<T>(what: string, work: () => T, { isUrgent = false } = {}): Promise<T> {
    const transaction = () => {
      const handle = this.#open();
      this.#lookAfterPause();
      if (isOpenTransaction(handle)) throw new OwnersTransaction();
      handle.exec("begin immediate");
      try {
        const value = work();
        handle.exec("commit");
        return value;
      } catch (error) {
        if (isInTransaction(handle)) handle.exec("rollback");
        throw error;
      }
    };
    const begin = () => this.#whileBusy(what, this.#handle, transaction);
    return isUrgent ? begin() : this.#inTurn(begin);
  }

  /** The handle through which statements are sent. */
  get handle(): SqliteHandle {
    return this.#open();
  }

  /** The same statements through another handle, which still belongs to its owner; nothing is opened. */
  on(handle: SqliteHandle): SqliteFile {
    const other = new SqliteFile({ ...this.#params, source: { handle } });
    other.#handle = handle;
    return other;
  }

  read<T>(work: () => T): Promise<T> {
    return this.#inTurn(() => this.#whileBusy("read", this.#handle, work));
  }

  /**
   * Begins at once, or in the next turn of the event loop if this process has worked for some milliseconds without one.
   * In a transaction of the owner it begins at once: in a turn, other code of the process could run in between.
   */
  #inTurn<T>(begin: () => Promise<T>): Promise<T> {
    const turn = this.#params.clock.giveWay?.();
    if (!turn || (this.#handle && isOpenTransaction(this.#handle))) return begin();
    this.#waitingCount += 1;
    return turn.then(() => {
      this.#waitingCount -= 1;
      return begin();
    });
  }

  /**
   * Reads that see one state of the file, on a connection of their own that cannot write; between two of them other
   * code of this process runs. With only one connection they run without a break.
   */
  async snapshot<T>(steps: readonly ((file: SqliteFile) => T)[]): Promise<readonly T[]> {
    const { source, clock } = this.#params;
    if (!("file" in source) || source.file === ":memory:")
      return this.#whileBusy("read", this.#handle, () => readOnly(this, steps));
    this.look();
    const other = new SqliteFile({ ...this.#params, mayCreate: false });
    await other.open();
    try {
      other.exec("pragma query_only = on");
      other.exec("begin");
      const answers: T[] = [];
      for (const step of steps) {
        answers.push(step(other));
        await new Promise<void>((resolve) => clock.soon(resolve));
      }
      return answers;
    } finally {
      await other.close();
    }
  }

  all(template: string, params: Row = {}): Row[] {
    const { statement, parameters } = this.#prepare(template);
    return statement.all(...valuesOf(parameters, params)) as Row[];
  }

  get(template: string, params: Row = {}): Row | undefined {
    const { statement, parameters } = this.#prepare(template);
    return statement.get(...valuesOf(parameters, params)) as Row | undefined;
  }

  run(template: string, params: Row = {}): number {
    const { statement, parameters } = this.#prepare(template);
    return Number(statement.run(...valuesOf(parameters, params)).changes);
  }

  /** A statement over `json_each(:rows)`, for these rows. */
  runEach(template: string, rows: readonly unknown[], params: Row = {}): number {
    const over = overRows(template, rows);
    return this.run(over.template, { ...params, rows: over.rows });
  }

  allEach(template: string, rows: readonly unknown[], params: Row = {}): Row[] {
    const over = overRows(template, rows);
    return this.all(over.template, { ...params, rows: over.rows });
  }

  exec(sql: string): void {
    this.#open().exec(sql);
  }

  get isInTransaction(): boolean {
    return isInTransaction(this.#open());
  }

  /** Calls back, debounced, when another connection has written. Only a hint. */
  async watch(onChange: () => void): Promise<void> {
    const { source, clock } = this.#params;
    if (!("file" in source) || source.file === ":memory:" || this.#watcher) return;
    const { watch } = await import("node:fs");
    const { dirname, basename } = await import("node:path");
    // A short program may have closed the file by now.
    if (!this.#handle || this.#watcher) return;
    const name = basename(source.file);
    let isPending = false;
    let seen: unknown;
    const look = () => {
      isPending = false;
      if (!this.#handle) return;
      const version = this.#dataVersion();
      if (version === undefined || version !== seen) onChange();
      seen = version;
    };
    seen = this.#dataVersion();
    try {
      this.#watcher = watch(dirname(source.file), (_, changed) => {
        if (isPending || (changed !== null && !changed.startsWith(name))) return;
        isPending = true;
        clock.soon(look);
      });
      this.#watcher.on("error", () => this.#watcher?.close());
      this.#watcher.unref();
    } catch {
      // A file system without notification: polling finds the work.
    }
  }

  /** Undefined if it cannot be read now: no caller waits for this, so a failure has no receiver. */
  #dataVersion(): unknown {
    try {
      return this.get("select * from pragma_data_version")?.data_version;
    } catch {
      return undefined;
    }
  }

  #open(): SqliteHandle {
    if (!this.#handle)
      throw new StoreUnavailableError({ tried: "use a SQLite file that is closed" });
    if (this.#place?.gone) throw this.#place.gone;
    return this.#handle;
  }

  #prepare(template: string): Prepared {
    let prepared = this.#prepared.get(template);
    if (!prepared) {
      const { text, parameters }: FilledStatement = unnamed(template, this.#params.dialect);
      prepared = { parameters, statement: this.#open().prepare(text) };
      this.#prepared.set(template, prepared);
    }
    return prepared;
  }

  /** Between our statements, the owner of a given handle waits for locks as before. */
  #withoutWaiting<T>(handle: SqliteHandle | null, work: () => T): T {
    // Null for a handle of ours; zero for an owner that does not wait either.
    if (!this.#ownersTimeoutMs || !handle) return work();
    handle.exec(NO_WAITING);
    try {
      return work();
    } finally {
      handle.exec(`pragma busy_timeout = ${this.#ownersTimeoutMs}`);
    }
  }

  /** The wait is asynchronous and jittered: processes take turns, and the event loop stays free. */
  async #whileBusy<T>(what: string, handle: SqliteHandle | null, work: () => T): Promise<T> {
    const { clock, random, source } = this.#params;
    const startedAt = clock.monotonicMs();
    for (;;) {
      try {
        if (this.#place?.gone) throw this.#place.gone;
        return this.#withoutWaiting(handle, work);
      } catch (error) {
        // Nothing was changed: SQLite has undone the transaction, or never began it.
        if (sqliteCode(error) === RESULT_CODES.FULL)
          throw new StoreUnavailableError({ tried: `${what} (the disk is full)`, cause: error });
        if (sqliteCode(error) === RESULT_CODES.READONLY)
          throw new StoreReadOnlyError({ file: nameOf(source), tried: what, cause: error });
        if (!isBusy(error)) throw error;
        if (clock.monotonicMs() - startedAt > BUSY_RETRIED_FOR_MS) {
          const why =
            error instanceof OwnersTransaction ? error.message : "the file was locked for 30 s";
          throw new StoreUnavailableError({ tried: `${what} (${why})`, cause: error });
        }
        await delay(clock, 1 + random.next() * 4);
      }
    }
  }
}

/**
 * A person who stops the application and copies its file then has everything. SQLite would checkpoint at the last
 * close, but prepared statements keep the library's connection half open until they are collected, which is often
 * never. It waits for no reader: the pages that a reader blocks stay in the -wal file.
 */
function moveIntoFile(handle: SqliteHandle): void {
  try {
    handle.prepare("pragma wal_checkpoint(passive)").get();
  } catch {
    // A read-only file, or a snapshot inside a transaction: nothing was written there.
  }
}

/** In one transaction of a handle that other code uses too. */
function readOnly<T>(file: SqliteFile, steps: readonly ((file: SqliteFile) => T)[]): T[] {
  const { handle } = file;
  if (isOpenTransaction(handle)) throw new OwnersTransaction();
  handle.exec("pragma query_only = on");
  try {
    handle.exec("begin");
    try {
      return steps.map((step) => step(file));
    } finally {
      handle.exec("rollback");
    }
  } finally {
    handle.exec("pragma query_only = off");
  }
}

function valuesOf(parameters: readonly string[], params: Row): unknown[] {
  return parameters.map((name) => {
    const value = params[name];
    return typeof value === "boolean" ? Number(value) : (value ?? null);
  });
}

/** The owner of a given handle has an open transaction: everything that we write now would be part of it. */
class OwnersTransaction extends Error {
  override readonly message =
    "for 30 s a transaction of yours was open on the given handle; inside of it, enqueue with { tx: handle }";
}

function isBusy(error: unknown): boolean {
  if (error instanceof OwnersTransaction) return true;
  const code = sqliteCode(error);
  return code === 5 || code === 6;
}
