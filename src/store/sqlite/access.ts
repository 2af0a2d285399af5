// Keeps the sessions of the dashboard on SQLite.

import type { AccessStore } from "../access.js";
import type { SqliteAudit } from "./audit.js";
import type { SqliteFile } from "./connection.js";
import type { SqliteSession } from "./session.js";

export const PRUNE_SESSIONS = "delete from {session} where until_at <= :now";

const CROWD_OUT_SESSIONS = /* sql */ `
delete from {session} where digest in (
  select s.digest from {session} s where s.secret = :secret order by s.until_at desc, s.digest limit -1 offset (:keep - 1))`;

export const BEGIN_SESSION = /* sql */ `
insert into {session} (digest, secret, until_at) values (:digest, :secret, :now + :lengthMs) on conflict do nothing`;

export const SESSION_SECRET =
  "select secret from {session} where digest = :digest and until_at > :now";

export const END_SESSION = "delete from {session} where digest = :digest";

export class SqliteAccess implements AccessStore {
  readonly #asker: SqliteSession;
  readonly #file: SqliteFile;
  readonly #audit: SqliteAudit;

  constructor(asker: SqliteSession, audit: SqliteAudit) {
    this.#asker = asker;
    this.#file = asker.file;
    this.#audit = audit;
  }

  readonly beginSession: AccessStore["beginSession"] = async ({ audit, ...params }) => {
    const { secret, keep, digest, lengthMs } = params;
    await this.#audit.change({
      what: "beginSession",
      audit,
      work: (now) => {
        this.#file.run(CROWD_OUT_SESSIONS, { secret, keep });
        return this.#file.run(BEGIN_SESSION, { digest, secret, lengthMs, now });
      },
      isDone: (begun) => begun > 0,
    });
  };

  readonly sessionSecret: AccessStore["sessionSecret"] = (digest) =>
    this.#asker.read((now) => {
      const row = this.#file.get(SESSION_SECRET, { digest, now });
      return row ? String(row.secret) : null;
    });

  readonly endSession: AccessStore["endSession"] = ({ audit, digest }) =>
    this.#audit.change({
      what: "endSession",
      audit,
      work: () => this.#file.run(END_SESSION, { digest }) > 0,
      isDone: (wasThere) => wasThere,
    });

  prune(now: number): number {
    return this.#file.run(PRUNE_SESSIONS, { now });
  }
}
