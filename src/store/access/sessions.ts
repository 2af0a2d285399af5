// Keeps the sessions of the dashboard. A session that has ended, has expired or never began opens nothing, on every
// instance and after every restart.

import { type Audited, addAudit } from "../audit.js";
import { row, rows, run, type Statements, type StoreSession } from "../session.js";

/** Makes room for one more. A repeated try finds its own session stored and does not count it. */
const CROWD_OUT = /* sql */ `
delete from {session} where digest in (
  select x.digest from (
    select s.digest, row_number() over (order by s.until_at desc, s.digest) as place
    from {session} s where s.secret = :secret and s.digest <> :digest) x
  where x.place >= :keep::int)`;

/** No row: the session exists already, because the statement was repeated. */
const BEGIN = /* sql */ `
insert into {session} (digest, secret, until_at) values (:digest, :secret, {now} + :lengthMs::bigint)
on conflict (digest) do nothing returning digest`;

const SECRET = "select secret from {session} where digest = :digest and until_at > {now}";

const END = "delete from {session} where digest = :digest returning digest";

const END_OF_SECRET = "delete from {session} where secret = :secret";

const PRUNE = "delete from {session} where until_at <= {now} returning digest";

export class Sessions {
  readonly #session: StoreSession;

  constructor(session: StoreSession) {
    this.#session = session;
  }

  /**
   * Stores a session with this lifetime by the database's clock. The newest `keep` sessions of a secret are kept, so
   * the table stays small however often people sign in.
   */
  async begin({
    digest,
    secret,
    lengthMs,
    keep,
    audit,
  }: {
    /** The digest of the token in the cookie; the token itself is stored nowhere. */
    readonly digest: string;
    /** Identifies the presented secret without revealing it. */
    readonly secret: string;
    readonly lengthMs: number;
    readonly keep: number;
  } & Audited): Promise<void> {
    await this.#session.transaction("sessions.begin", { lost: "repeat" }, function* () {
      yield* run(CROWD_OUT, { digest, secret, keep });
      const begun = yield* row(BEGIN, { digest, secret, lengthMs });
      if (begun) yield* addAudit(audit);
    });
  }

  /** The secret that a session belongs to; null if there is no such session, or it has expired. */
  async secret(digest: string): Promise<string | null> {
    const params = { digest };
    const [found] = await this.#session.read({ verb: "sessions.secret", sql: SECRET, params });
    return found ? String(found.secret) : null;
  }

  /** Ends a session. False if there was none. */
  end({ digest, audit }: { readonly digest: string } & Audited): Promise<boolean> {
    return this.#session.transaction("sessions.end", { lost: "repeat" }, function* () {
      const ended = yield* row(END, { digest });
      if (ended) yield* addAudit(audit);
      return ended !== undefined;
    });
  }
}

/** Ends all sessions of a secret, inside the transaction that removes the secret. */
export function* endSessionsOf(secret: string): Statements<void> {
  yield* run(END_OF_SECRET, { secret });
}

/** Removes expired sessions; returns how many. */
export function* pruneSessions(): Statements<number> {
  return (yield* rows(PRUNE)).length;
}
