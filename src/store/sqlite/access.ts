// Keeps the sessions of the page on SQLite.

import type { AccessStore } from "../access.js";
import type { SqliteAudit } from "./audit.js";
import type { SqliteFile } from "./connection.js";
import type { SqliteSession } from "./session.js";
import * as sql from "./sql/access.js";

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
        this.#file.run(sql.CROWD_OUT_SESSIONS, { secret, keep });
        return this.#file.run(sql.BEGIN_SESSION, { digest, secret, lengthMs, now });
      },
      isDone: (begun) => begun > 0,
    });
  };

  readonly sessionSecret: AccessStore["sessionSecret"] = (digest) =>
    this.#asker.read((now) => {
      const row = this.#file.get(sql.SESSION_SECRET, { digest, now });
      return row ? String(row.secret) : null;
    });

  readonly endSession: AccessStore["endSession"] = ({ audit, digest }) =>
    this.#audit.change({
      what: "endSession",
      audit,
      work: () => this.#file.run(sql.END_SESSION, { digest }) > 0,
      isDone: (wasThere) => wasThere,
    });

  prune(now: number): number {
    return this.#file.run(sql.PRUNE_SESSIONS, { now });
  }
}
