// Keeps the sessions of the dashboard and the named keys on PostgreSQL.

import type { AccessStore } from "../access.js";
import {
  EXPIRED_KEPT_MS,
  KEY_SESSION,
  keyParams,
  keysSql,
  toKeyRecord,
  USE_STEP_MS,
} from "../sql/access-keys.js";
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

/** No row: the name is taken. */
const CREATE_KEY = /* sql */ `
insert into {access_key} (name, digest, scopes, jobs, queues, created_at, created_by, expires_at)
values (:name, :digest, :scopes, :jobs, :queues, {now}, :by, {now} + :lifeMs::bigint)
on conflict (name) do nothing returning name`;

/** The sessions of the key end with it. */
const REVOKE_KEY = /* sql */ `
with gone as (
  delete from {session} where secret = (select ${KEY_SESSION} from {access_key} k where k.name = :name)
)
delete from {access_key} where name = :name returning name`;

const TOUCH_KEY = /* sql */ `
update {access_key} set used_at = {now}
where name = :name and (used_at is null or used_at <= {now} - ${USE_STEP_MS}) returning name`;

const PRUNE_KEYS = /* sql */ `
delete from {access_key} where expires_at <= {now} - ${EXPIRED_KEPT_MS} returning name`;

const LIST_KEYS = keysSql("{now}", "true");
const KEY_BY_NAME = keysSql("{now}", "k.name = :name");
const KEY_BY_DIGEST = keysSql("{now}", "k.digest = :digest");

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

  readonly createKey: AccessStore["createKey"] = async ({ audit, ...key }) => {
    const params = keyParams(key);
    await this.#change({ what: "createKey", template: CREATE_KEY, params, audit });
    // The statement may have been repeated: the key of this digest is ours, whichever try stored it.
    const stored = await this.accessKey({ name: key.name });
    return stored?.digest === key.digest ? stored : null;
  };

  readonly accessKeys: AccessStore["accessKeys"] = async () =>
    (await this.#asker.repeat("keys", LIST_KEYS, {})).map(toKeyRecord);

  readonly accessKey: AccessStore["accessKey"] = async (by) => {
    const template = "digest" in by ? KEY_BY_DIGEST : KEY_BY_NAME;
    const [row] = await this.#asker.repeat("key", template, by);
    return row ? toKeyRecord(row) : null;
  };

  readonly revokeKey: AccessStore["revokeKey"] = async ({ audit, ...params }) => {
    const change = { what: "revokeKey", template: REVOKE_KEY, params, audit };
    return (await this.#change(change)) !== undefined;
  };

  readonly touchKey: AccessStore["touchKey"] = async (name) => {
    await this.#asker.repeat("touchKey", TOUCH_KEY, { name });
  };

  async prune(): Promise<number> {
    const keys = await this.#asker.repeat("prune", PRUNE_KEYS, {});
    return keys.length + (await this.#asker.repeat("prune", PRUNE_SESSIONS, {})).length;
  }

  #change(change: Omit<Parameters<PostgresAudit["change"]>[0], "isDone">) {
    return this.#audit.change({ ...change, isDone: (row) => row !== undefined });
  }
}
