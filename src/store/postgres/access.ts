// Keeps the sessions of the dashboard on PostgreSQL.

import type { AccessStore } from "../access.js";
import type { PostgresAudit } from "./audit.js";
import type { PostgresSession } from "./session.js";

export const PRUNE_SESSIONS = "delete from {session} where until_at <= {now} returning digest";

/** No row: it is there already, since the statement was repeated. */
export const BEGIN_SESSION = /* sql */ `
with gone as (
  delete from {session} where digest in (
    select s.digest from {session} s where s.secret = :secret order by s.until_at desc, s.digest offset :keep::int - 1)
)
insert into {session} (digest, secret, until_at) values (:digest, :secret, {now} + :lengthMs::bigint)
on conflict (digest) do nothing returning digest`;

export const SESSION_SECRET =
  "select secret from {session} where digest = :digest and until_at > {now}";

export const END_SESSION = "delete from {session} where digest = :digest returning digest";

export class PostgresAccess implements AccessStore {
  readonly #asker: PostgresSession;
  readonly #audit: PostgresAudit;

  constructor(asker: PostgresSession, audit: PostgresAudit) {
    this.#asker = asker;
    this.#audit = audit;
  }

  readonly beginSession: AccessStore["beginSession"] = async ({ audit, ...params }) => {
    await this.#change({ what: "beginSession", template: BEGIN_SESSION, params, audit });
  };

  readonly sessionSecret: AccessStore["sessionSecret"] = async (digest) => {
    const [row] = await this.#asker.repeat("sessionSecret", SESSION_SECRET, { digest });
    return row ? String(row.secret) : null;
  };

  readonly endSession: AccessStore["endSession"] = async ({ audit, ...params }) => {
    const change = { what: "endSession", template: END_SESSION, params, audit };
    return (await this.#change(change)) !== undefined;
  };

  async prune(): Promise<number> {
    return (await this.#asker.repeat("prune", PRUNE_SESSIONS, {})).length;
  }

  #change(change: Omit<Parameters<PostgresAudit["change"]>[0], "isDone">) {
    return this.#audit.change({ ...change, isDone: (row) => row !== undefined });
  }
}
