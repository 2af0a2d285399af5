// Gives users `holdfast.locks`: lists locks and their history, and lets an operator release one.

import { type Actor, type AuditEntry, auditEntry } from "../operations/rules/audit.js";
import { ConfigurationError } from "../shared/errors.js";
import { storableText } from "../shared/json.js";
import { requireName } from "../shared/names.js";
import { CURSOR_PROBLEM, limitProblems, PAGE_DEFAULT, pageOf } from "../shared/paging.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type {
  LockHistoryRecord,
  LockProvider,
  LockRecord,
  LockState,
  LockStats,
} from "./rules/lock.js";

/** A lock that is held now. */
export type Lock = {
  readonly name: string;
  readonly fence: number;
  readonly holder: string;
  /** The execution that it was locked for, as the caller named it. */
  readonly execution: string | null;
  readonly acquiredAt: Date;
  readonly renewedAt: Date;
  readonly until: Date;
  /** How many calls wait for it. */
  readonly waiting: number;
};

/** One grant, held or over. */
export type LockGrantView = {
  readonly name: string;
  readonly fence: number;
  readonly holder: string;
  readonly execution: string | null;
  readonly state: LockState;
  readonly acquiredAt: Date;
  readonly until: Date;
  readonly endedAt: Date | null;
  readonly heldMs: number | null;
  /** Why an operator released it. */
  readonly note: string | null;
};

export type LockListOptions = {
  /** @default 50, at most 1,000 */
  readonly limit?: number | undefined;
  /** `nextCursor` of the page before. */
  readonly cursor?: string | undefined;
};

export type LockHistoryOptions = LockListOptions & {
  /** Only grants of this lock. */
  readonly name?: string | undefined;
};

export type LockReleased =
  | { readonly released: true; readonly holder: string; readonly fence: number }
  | { readonly released: false };

const NOTE_LENGTH_MAX = 500;

export type LocksParams = {
  readonly provider: (verb: string) => Promise<LockProvider>;
  readonly actor: Actor;
  /** Adds the audit entry if the provider does not; null if it does. */
  readonly addAudit: ((entry: AuditEntry) => Promise<void>) | null;
  readonly onReleased: (facts: {
    readonly lock: string;
    readonly fence: number;
    readonly holder: string;
    readonly note: string | null;
  }) => void;
};

export class Locks {
  readonly #params: LocksParams;

  constructor(params: LocksParams) {
    this.#params = params;
  }

  #provider(verb: string): Promise<LockProvider> {
    return this.#params.provider(verb);
  }

  /** Held locks, by name. */
  async list(
    options: LockListOptions = {},
  ): Promise<{ readonly locks: readonly Lock[]; readonly nextCursor: string | null }> {
    const { limit = PAGE_DEFAULT, cursor } = options;
    const problems = refuseUnknownMembers(options, ["limit", "cursor"], "locks.list()");
    problems.push(...limitProblems(limit));
    if (cursor !== undefined && typeof cursor !== "string") problems.push(CURSOR_PROBLEM);
    if (problems.length > 0) throw new ConfigurationError(problems);
    const records = await (await this.#provider("locks.list")).list({
      limit: limit + 1,
      ...(cursor === undefined ? {} : { after: cursor }),
    });
    const { page, last } = pageOf(records, limit);
    return { locks: page.map(toLock), nextCursor: last?.name ?? null };
  }

  /** Grants by state within retention: `acquired` are held now. */
  async stats(): Promise<LockStats> {
    return (await this.#provider("locks.stats")).stats();
  }

  /** Every grant within retention, newest first. */
  async history(
    options: LockHistoryOptions = {},
  ): Promise<{ readonly grants: readonly LockGrantView[]; readonly nextCursor: string | null }> {
    const { limit = PAGE_DEFAULT, cursor, name } = options;
    const problems = refuseUnknownMembers(options, ["limit", "cursor", "name"], "locks.history()");
    problems.push(...limitProblems(limit));
    if (cursor !== undefined && !/^\d{1,16}$/.test(cursor)) problems.push(CURSOR_PROBLEM);
    if (problems.length > 0) throw new ConfigurationError(problems);
    const records = await (await this.#provider("locks.history")).history({
      limit: limit + 1,
      ...(name === undefined ? {} : { name: requireName(name, "locks.history().name") }),
      ...(cursor === undefined ? {} : { before: Number(cursor) }),
    });
    const { page, last } = pageOf(records, limit);
    return { grants: page.map(toGrant), nextCursor: last && String(last.fence) };
  }

  /**
   * Takes a lock from its holder; the note is kept with the grant. The holder learns of it at its next renewal: until then
   * its function goes on, under a fence that is no longer current.
   */
  async release(name: string, note?: string): Promise<LockReleased> {
    requireName(name, "locks.release(name)");
    if (
      note !== undefined &&
      (typeof note !== "string" || note.length > NOTE_LENGTH_MAX || note.includes("\0"))
    ) {
      const message = `must be a text of at most ${NOTE_LENGTH_MAX} characters such as "stuck since the deploy"`;
      throw new ConfigurationError([{ field: "locks.release().note", message }]);
    }
    const provider = await this.#provider("locks.release");
    const { actor, addAudit, onReleased } = this.#params;
    const kept = note === undefined ? null : storableText(note, NOTE_LENGTH_MAX);
    const facts = { verb: "release", noun: "lock", name, note: kept } as const;
    const audit = auditEntry(actor, facts);
    const revoked = await provider.revoke({ name, note: kept, audit });
    if (!revoked) return { released: false };
    await addAudit?.(audit);
    const { holder, fence } = revoked;
    onReleased({ lock: name, fence, holder, note: kept });
    return { released: true, holder, fence };
  }
}

function toLock({ acquiredAt, renewedAt, until, execution, ...rest }: LockRecord): Lock {
  return {
    ...rest,
    execution: execution ?? null,
    acquiredAt: new Date(acquiredAt),
    renewedAt: new Date(renewedAt),
    until: new Date(until),
  };
}

function toGrant({
  acquiredAt,
  until,
  endedAt,
  execution,
  ...rest
}: LockHistoryRecord): LockGrantView {
  return {
    ...rest,
    execution: execution ?? null,
    acquiredAt: new Date(acquiredAt),
    until: new Date(until),
    endedAt: endedAt === null ? null : new Date(endedAt),
    heldMs: endedAt === null ? null : endedAt - acquiredAt,
  };
}
