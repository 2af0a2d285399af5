// Reads named keys for both engines: the columns, how a row becomes a record, and how coarse the last use is.

import type { KeyRecord } from "../access.js";

type Row = Record<string, unknown>;

/** The last use is written at most once in so long, however often a key is used. */
export const USE_STEP_MS = 3_600_000;
/** A key is still listed for so long after it has expired. */
export const EXPIRED_KEPT_MS = 30 * 86_400_000;

/**
 * Names the key in the rows of its sessions: by its name and the beginning of its digest, so that no session becomes one of a
 * later key of that name. The fingerprint of a configured secret never has a colon.
 */
export const KEY_SESSION = "'key:' || k.name || ':' || substr(k.digest, 1, 16)";

export function keysSql(now: string, condition: string): string {
  return /* sql */ `
select k.name, k.digest, k.scopes, k.jobs, k.queues, k.created_at, k.created_by, k.expires_at, k.used_at,
  ${KEY_SESSION} as session,
  case when k.expires_at <= ${now} then 1 else 0 end as is_expired,
  case when k.used_at is null or k.used_at <= ${now} - ${USE_STEP_MS} then 1 else 0 end as is_use_due
from {access_key} k where ${condition} order by k.name`;
}

export function toKeyRecord(row: Row): KeyRecord {
  const instant = (value: unknown) => (value === null ? null : Number(value));
  return {
    name: String(row.name),
    digest: String(row.digest),
    session: String(row.session),
    scopes: namesOf(row.scopes) ?? [],
    jobs: namesOf(row.jobs),
    queues: namesOf(row.queues),
    createdAt: Number(row.created_at),
    createdBy: String(row.created_by),
    expiresAt: instant(row.expires_at),
    usedAt: instant(row.used_at),
    isExpired: Number(row.is_expired) === 1,
    isUseDue: Number(row.is_use_due) === 1,
  };
}

/** A list that cannot be read names nothing: a damaged row opens nothing, and no limit is lost. */
function namesOf(text: unknown): readonly string[] | null {
  if (text === null) return null;
  try {
    const read: unknown = JSON.parse(String(text));
    return Array.isArray(read) ? read.map(String) : [];
  } catch {
    return [];
  }
}

export function keyParams(key: {
  readonly name: string;
  readonly digest: string;
  readonly scopes: readonly string[];
  readonly jobs: readonly string[] | null;
  readonly queues: readonly string[] | null;
  readonly by: string;
  readonly lifeMs: number | null;
}): Row {
  const { name, digest, scopes, jobs, queues, by, lifeMs } = key;
  const list = (names: readonly string[] | null) => (names === null ? null : JSON.stringify(names));
  return { name, digest, scopes: list(scopes), jobs: list(jobs), queues: list(queues), by, lifeMs };
}
