// Keeps the named keys that open the HTTP API. A key that was revoked or has expired opens nothing, on every instance
// and after every restart.

import { type Audited, addAudit } from "../audit.js";
import { flag, numberOrNull, type Row } from "../rows.js";
import { row, rows, type Statements, type StoreSession } from "../session.js";
import { endSessionsOf } from "./sessions.js";

/** The last use is written at most once in this time, however often a key is used. */
const USE_STEP_MS = 3_600_000;
/** An expired key is listed for this long. */
const EXPIRED_KEPT_MS = 30 * 86_400_000;

/**
 * Identifies the key in the rows of its sessions: by its name and the beginning of its digest, so that a later key of
 * the same name gets no old session. The fingerprint of a configured secret never has a colon.
 */
const SESSION = "'key:' || name || ':' || substr(digest, 1, 16)";

const SELECT = /* sql */ `
select name, digest, scopes, jobs, queues, created_at, created_by, expires_at, used_at, ${SESSION} as session,
  expires_at <= {now} as is_expired, used_at is null or used_at <= {now} - ${USE_STEP_MS} as is_use_due
from {access_key}`;
const LIST = `${SELECT} order by name`;
const BY_NAME = `${SELECT} where name = :name`;
const BY_DIGEST = `${SELECT} where digest = :digest`;

/** Answers callers without a credential, so it reads one row, however many keys there are. */
const HAS_UNLIMITED = /* sql */ `
select 1 as found from {access_key}
where jobs is null and queues is null and (expires_at is null or expires_at > {now}) limit 1`;

/** No row: the name is taken. */
const CREATE = /* sql */ `
insert into {access_key} (name, digest, scopes, jobs, queues, created_at, created_by, expires_at)
values (:name, :digest, :scopes, :jobs, :queues, {now}, :by, {now} + :lifeMs::bigint)
on conflict (name) do nothing returning name`;

const REVOKE = /* sql */ `
delete from {access_key} where name = :name returning ${SESSION} as session`;

const TOUCH = /* sql */ `
update {access_key} set used_at = {now}
where name = :name and (used_at is null or used_at <= {now} - ${USE_STEP_MS})`;

const PRUNE = /* sql */ `
delete from {access_key} where expires_at <= {now} - ${EXPIRED_KEPT_MS} returning name`;

/** A named key; its secret is stored nowhere. */
export type KeyRecord = {
  readonly name: string;
  /** Of the secret. */
  readonly digest: string;
  /** Identifies it in the rows of its sessions: `key:`, the name, a colon and the beginning of the digest. */
  readonly session: string;
  readonly scopes: readonly string[];
  /** Null: every job, every queue. */
  readonly jobs: readonly string[] | null;
  readonly queues: readonly string[] | null;
  readonly createdAt: number;
  readonly createdBy: string;
  readonly expiresAt: number | null;
  /** To the hour. */
  readonly usedAt: number | null;
  /** By the database's clock. */
  readonly isExpired: boolean;
  /** The stored last use is old enough to be written again. */
  readonly isUseDue: boolean;
};

type NewAccessKey = Pick<KeyRecord, "name" | "digest" | "scopes" | "jobs" | "queues"> & {
  readonly by: string;
  /** By the database's clock; null: it does not expire. */
  readonly lifeMs: number | null;
};

export class AccessKeys {
  readonly #session: StoreSession;

  constructor(session: StoreSession) {
    this.#session = session;
  }

  /** Stores a key; null: another key has that name. */
  create({ audit, ...key }: NewAccessKey & Audited): Promise<KeyRecord | null> {
    return this.#session.transaction("keys.create", { lost: "repeat" }, function* () {
      const created = yield* row(CREATE, keyParams(key));
      if (created) yield* addAudit(audit);
      // The transaction may have been repeated: the key with this digest is ours, whichever try stored it.
      const stored = yield* row(BY_NAME, { name: key.name });
      return stored?.digest === key.digest ? toKeyRecord(stored) : null;
    });
  }

  /** Every key by name, also those that have expired lately. */
  async list(): Promise<readonly KeyRecord[]> {
    return (await this.#session.read({ verb: "keys.list", sql: LIST })).map(toKeyRecord);
  }

  /** Whether there is a key without limits that has not expired. */
  async hasUnlimited(): Promise<boolean> {
    const found = await this.#session.read({ verb: "keys.hasUnlimited", sql: HAS_UNLIMITED });
    return found.length > 0;
  }

  /** The key of that digest or of that name, expired or not; one read by an index. */
  async get(
    by: { readonly digest: string } | { readonly name: string },
  ): Promise<KeyRecord | null> {
    const sql = "digest" in by ? BY_DIGEST : BY_NAME;
    const [found] = await this.#session.read({ verb: "keys.get", sql, params: by });
    return found ? toKeyRecord(found) : null;
  }

  /** Removes a key and ends its sessions. False if there was no such key. */
  revoke({ name, audit }: { readonly name: string } & Audited): Promise<boolean> {
    return this.#session.transaction("keys.revoke", { lost: "repeat" }, function* () {
      const revoked = yield* row(REVOKE, { name });
      if (!revoked) return false;
      yield* endSessionsOf(String(revoked.session));
      yield* addAudit(audit);
      return true;
    });
  }

  /** Notes that the key was used, at most once an hour. */
  async touch(name: string): Promise<void> {
    // A second execution finds the use that the first one stored, and changes nothing.
    await this.#session.write({ verb: "keys.touch", sql: TOUCH, params: { name }, lost: "repeat" });
  }
}

/** Removes keys that expired long ago; returns how many. */
export function* pruneExpiredKeys(): Statements<number> {
  return (yield* rows(PRUNE)).length;
}

function toKeyRecord(row: Row): KeyRecord {
  return {
    name: String(row.name),
    digest: String(row.digest),
    session: String(row.session),
    scopes: namesOf(row.scopes) ?? [],
    jobs: namesOf(row.jobs),
    queues: namesOf(row.queues),
    createdAt: Number(row.created_at),
    createdBy: String(row.created_by),
    expiresAt: numberOrNull(row.expires_at),
    usedAt: numberOrNull(row.used_at),
    isExpired: flag(row.is_expired),
    isUseDue: flag(row.is_use_due),
  };
}

/** An unreadable list means no names at all, not no limit: a damaged row opens nothing. */
function namesOf(text: unknown): readonly string[] | null {
  if (text === null) return null;
  try {
    const read: unknown = JSON.parse(String(text));
    return Array.isArray(read) ? read.map(String) : [];
  } catch {
    return [];
  }
}

function keyParams({ name, digest, scopes, jobs, queues, by, lifeMs }: NewAccessKey): Row {
  const list = (names: readonly string[] | null) => (names === null ? null : JSON.stringify(names));
  return { name, digest, scopes: list(scopes), jobs: list(jobs), queues: list(queues), by, lifeMs };
}
