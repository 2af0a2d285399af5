// Keeps the sessions of the dashboard and the named keys on SQLite.

import type { AccessStore } from "../access.js";
import {
  EXPIRED_KEPT_MS,
  KEY_SESSION,
  keyParams,
  keysSql,
  toKeyRecord,
  USE_STEP_MS,
} from "../sql/access-keys.js";
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

const CREATE_KEY = /* sql */ `
insert into {access_key} (name, digest, scopes, jobs, queues, created_at, created_by, expires_at)
values (:name, :digest, :scopes, :jobs, :queues, :now, :by, :now + :lifeMs) on conflict (name) do nothing`;

const REVOKE_KEY = "delete from {access_key} where name = :name";

const END_SESSIONS_OF_KEY = /* sql */ `
delete from {session} where secret = (select ${KEY_SESSION} from {access_key} k where k.name = :name)`;

const TOUCH_KEY = /* sql */ `
update {access_key} set used_at = :now
where name = :name and (used_at is null or used_at <= :now - ${USE_STEP_MS})`;

const PRUNE_KEYS = `delete from {access_key} where expires_at <= :now - ${EXPIRED_KEPT_MS}`;

const LIST_KEYS = keysSql(":now", "true");
const KEY_BY_NAME = keysSql(":now", "k.name = :name");
const KEY_BY_DIGEST = keysSql(":now", "k.digest = :digest");

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

  readonly createKey: AccessStore["createKey"] = ({ audit, ...key }) =>
    this.#audit.change({
      what: "createKey",
      audit,
      work: (now) => {
        if (this.#file.run(CREATE_KEY, { ...keyParams(key), now }) === 0) return null;
        const row = this.#file.get(KEY_BY_NAME, { name: key.name, now });
        return row ? toKeyRecord(row) : null;
      },
      isDone: (stored) => stored !== null,
    });

  readonly accessKeys: AccessStore["accessKeys"] = () =>
    this.#asker.read((now) => this.#file.all(LIST_KEYS, { now }).map(toKeyRecord));

  readonly accessKey: AccessStore["accessKey"] = (by) =>
    this.#asker.read((now) => {
      const template = "digest" in by ? KEY_BY_DIGEST : KEY_BY_NAME;
      const row = this.#file.get(template, { ...by, now });
      return row ? toKeyRecord(row) : null;
    });

  /** The sessions of the key end with it. */
  readonly revokeKey: AccessStore["revokeKey"] = ({ audit, name }) =>
    this.#audit.change({
      what: "revokeKey",
      audit,
      work: () => {
        this.#file.run(END_SESSIONS_OF_KEY, { name });
        return this.#file.run(REVOKE_KEY, { name }) > 0;
      },
      isDone: (wasThere) => wasThere,
    });

  readonly touchKey: AccessStore["touchKey"] = async (name) => {
    await this.#asker.write("touchKey", (now) => this.#file.run(TOUCH_KEY, { name, now }));
  };

  prune(now: number): number {
    return this.#file.run(PRUNE_KEYS, { now }) + this.#file.run(PRUNE_SESSIONS, { now });
  }
}
