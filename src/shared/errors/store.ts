// Defines the exceptions about the database: unreachable, unsupported, read-only, gone, or with an unknown outcome.

import { redactUrl } from "../redact.js";
import { quoteShort } from "../suggest.js";
import { causeOption, causeText, HoldfastError, nameErrors } from "./base.js";

/** The database could not be reached; `url` has no secrets in it. */
export class StoreUnavailableError extends HoldfastError {
  readonly code = "STORE_UNAVAILABLE";
  readonly tried: string;
  readonly url: string | undefined;
  /** Whether waiting may help. It does not if the database refuses: a wrong password, an unknown database name. */
  readonly isTemporary: boolean;
  constructor(params: {
    tried: string;
    url?: string | undefined;
    cause?: unknown;
    isTemporary?: boolean;
  }) {
    const { tried, url, cause, isTemporary = true } = params;
    const shownUrl = url === undefined ? undefined : redactUrl(url);
    const where = shownUrl === undefined ? "" : ` at ${shownUrl}`;
    const why = causeText(cause, url);
    super(`The database${where} could not be reached (tried: ${tried})${why}.`, causeOption(cause));
    this.tried = tried;
    this.url = shownUrl;
    this.isTemporary = isTemporary;
  }
}

/** The database or its library is too old, or lacks a feature that the guarantees need. */
export class StoreUnsupportedError extends HoldfastError {
  readonly code = "STORE_UNSUPPORTED";
  readonly found: string;
  readonly needed: string;
  constructor({ found, needed, advice }: { found: string; needed: string; advice: string }) {
    super(`Found ${found}, but ${needed} is needed. ${advice}`);
    this.found = found;
    this.needed = needed;
  }
}

/** This process may not write the SQLite file or its folder. */
export class StoreReadOnlyError extends HoldfastError {
  readonly code = "STORE_READ_ONLY";
  readonly file: string;
  readonly tried: string;
  constructor({ file, tried, cause }: { file: string; tried: string; cause?: unknown }) {
    super(
      `This process may not write the SQLite file ${quoteShort(file)} or its folder (tried: ${tried}). Nothing was stored. ` +
        "Let its user read and write both: SQLite keeps a -wal and a -shm file beside the database, also for reading.",
      causeOption(cause),
    );
    this.file = file;
    this.tried = tried;
  }
}

/** The SQLite file was deleted, moved or replaced while it was open. */
export class StoreGoneError extends HoldfastError {
  readonly code = "STORE_GONE";
  readonly file: string;
  /** Whether another file is now at its path. */
  readonly isReplaced: boolean;
  constructor({ file, isReplaced }: { file: string; isReplaced: boolean }) {
    super(
      `The SQLite file ${quoteShort(file)} was ${isReplaced ? "replaced by another file" : "deleted or moved"} while it was ` +
        "open. Nothing more is stored in it. Stop every process that uses it, put the file in its place together with its -wal " +
        "file, if it has one, and start again.",
    );
    this.file = file;
    this.isReplaced = isReplaced;
  }
}

/** The response to a commit was lost and could not be read back: the commit may or may not have happened. */
export class OutcomeUnknownError extends HoldfastError {
  readonly code = "OUTCOME_UNKNOWN";
  constructor(
    readonly what: string,
    options?: ErrorOptions,
  ) {
    super(
      `The database's answer to "${what}" was lost and could not be read back: it may or may not ` +
        "have happened. Repeat it with the same id or key, which cannot make a second one.",
      options,
    );
  }
}

/** The tables do not fit this version of the library and were left as they are. */
export class MigrationError extends HoldfastError {
  readonly code = "MIGRATION_REFUSED";
  constructor(
    message: string,
    /** The version of the existing tables; null if there are none. */
    readonly version: number | null = null,
  ) {
    super(message);
  }
}

/** The database refused to store how this attempt ended, but accepted other settlements. */
export class SettlementRefusedError extends HoldfastError {
  readonly code = "SETTLEMENT_REFUSED";
  constructor(said: string) {
    super(`The database refused to store how the attempt ended. It said: ${said}`);
  }
}

nameErrors({
  StoreUnavailableError,
  StoreUnsupportedError,
  StoreReadOnlyError,
  StoreGoneError,
  OutcomeUnknownError,
  MigrationError,
  SettlementRefusedError,
});
