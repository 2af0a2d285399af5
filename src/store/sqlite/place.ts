// Notices for a SQLite store that the file at its path is no longer the one that it has open. SQLite itself goes on
// with a file that was deleted, moved or replaced, and what it commits there is found by nobody.

import type { BigIntStats } from "node:fs";
import { StoreGoneError } from "../../shared/errors.js";

/** Which file a path leads to. */
type Identity = Pick<BigIntStats, "dev" | "ino">;
/** Null where that cannot be said now: a folder that may not be read says nothing about the file. */
type Find = (file: string) => Identity | "missing" | null;

export class SqlitePlace {
  readonly #file: string;
  readonly #find: Find;
  readonly #opened: Identity | null;
  #gone: StoreGoneError | null = null;

  private constructor(file: string, find: Find) {
    this.#file = file;
    this.#find = find;
    const found = find(file);
    this.#opened = found === "missing" ? null : found;
  }

  /** `file` is absolute, and open: it is looked at here for the first time. */
  static async of(file: string): Promise<SqlitePlace> {
    const { statSync } = await import("node:fs");
    const find: Find = (each) => {
      try {
        return statSync(each, { bigint: true });
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        return code === "ENOENT" || code === "ENOTDIR" ? "missing" : null;
      }
    };
    return new SqlitePlace(file, find);
  }

  /** Why nothing is stored any more; null while the file was in its place whenever somebody looked. */
  get gone(): StoreGoneError | null {
    return this.#gone;
  }

  /** Throws if another file, or none, is at the path. It stays gone, also if somebody puts it back. */
  look(): void {
    if (this.#gone) throw this.#gone;
    if (!this.#opened) return;
    const found = this.#find(this.#file);
    if (found === null) return;
    if (found !== "missing" && found.ino === this.#opened.ino && found.dev === this.#opened.dev)
      return;
    this.#gone = new StoreGoneError({ file: this.#file, isReplaced: found !== "missing" });
    throw this.#gone;
  }
}
