// Keeps the sessions of the page on PostgreSQL.

import type { AccessStore } from "../access.js";
import type { PostgresAudit } from "./audit.js";
import type { PostgresSession } from "./session.js";
import * as sql from "./sql/access.js";

export class PostgresAccess implements AccessStore {
  readonly #asker: PostgresSession;
  readonly #audit: PostgresAudit;

  constructor(asker: PostgresSession, audit: PostgresAudit) {
    this.#asker = asker;
    this.#audit = audit;
  }

  readonly beginSession: AccessStore["beginSession"] = async ({ audit, ...params }) => {
    await this.#change({ what: "beginSession", template: sql.BEGIN_SESSION, params, audit });
  };

  readonly sessionSecret: AccessStore["sessionSecret"] = async (digest) => {
    const [row] = await this.#asker.repeat("sessionSecret", sql.SESSION_SECRET, { digest });
    return row ? String(row.secret) : null;
  };

  readonly endSession: AccessStore["endSession"] = async ({ audit, ...params }) => {
    const change = { what: "endSession", template: sql.END_SESSION, params, audit };
    return (await this.#change(change)) !== undefined;
  };

  async prune(): Promise<number> {
    return (await this.#asker.repeat("prune", sql.PRUNE_SESSIONS, {})).length;
  }

  #change(change: Omit<Parameters<PostgresAudit["change"]>[0], "isDone">) {
    return this.#audit.change({ ...change, isDone: (row) => row !== undefined });
  }
}
