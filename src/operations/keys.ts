// Makes, lists and revokes named keys for operators: `holdfast.keys`. A key is a random secret with scopes and, if wanted,
// limits and an end. Its secret is shown once; the database holds the digest alone.

import { createHash } from "node:crypto";
import { systemIds } from "../shared/adapters/random.js";
import { type Duration, durationMs, formatDuration } from "../shared/duration.js";
import {
  ConfigurationError,
  KeyNotFoundError,
  KeyTakenError,
  type Problem,
} from "../shared/errors.js";
import { KEY_START } from "../shared/known-secrets.js";
import { requireName } from "../shared/names.js";
import { requireOptions } from "../shared/options.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { KeyRecord } from "../store/access/keys.js";
import type { Store } from "../store/store.js";
import { type Actor, auditEntry } from "./rules/audit.js";
import { isScope, LIMITABLE_SCOPES, SCOPES, type Scope } from "./rules/scopes.js";

export type KeyOptions = {
  /** The scopes that it opens; `admin` opens everything. */
  readonly scopes: readonly Scope[];
  /** These jobs alone; for the scopes trigger, enqueue and worker. @default every job */
  readonly jobs?: readonly string[] | undefined;
  /** These queues alone; for the scopes trigger, enqueue and worker. @default every queue */
  readonly queues?: readonly string[] | undefined;
  /** How long the key is valid, for example "90d". @default it does not expire */
  readonly expires?: Duration | undefined;
};

export type AccessKey = {
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** Null: every job. */
  readonly jobs: readonly string[] | null;
  /** Null: every queue. */
  readonly queues: readonly string[] | null;
  readonly createdAt: Date;
  readonly createdBy: string;
  /** Null: it does not expire. */
  readonly expiresAt: Date | null;
  readonly isExpired: boolean;
  /** The last use, rounded to the hour; null if it was never used. */
  readonly lastUsedAt: Date | null;
};

/** With its secret, which cannot be shown again. */
export type CreatedKey = AccessKey & { readonly secret: string };

const KEYS_MAX = 1_000;
const NAMES_MAX = 100;
/** Names that the audit trail uses for callers without a name, and those that no URL can have, so that HTTP could not revoke them. */
const RESERVED: readonly string[] = ["http", "page", ".", ".."];
const MEMBERS = ["scopes", "jobs", "queues", "expires"];
const LIFE_MIN_MS = 60_000;
const SECRET = new RegExp(`^${KEY_START}[0-9a-f]{64}$`);
const ids = systemIds();

export class Keys {
  readonly #store: () => Promise<Store>;
  readonly #actor: Actor;

  constructor(params: { readonly store: () => Promise<Store>; readonly actor: Actor }) {
    this.#store = params.store;
    this.#actor = params.actor;
  }

  /** Makes a key and returns its secret, which is stored nowhere. The audit trail names the key for its uses. */
  async create(name: string, options: KeyOptions): Promise<CreatedKey> {
    const key = readKey(name, options);
    const store = await this.#store();
    if ((await store.keys.list()).length >= KEYS_MAX) throw tooMany();
    const secret = `${KEY_START}${ids.unique()}${ids.unique()}`.replaceAll("-", "");
    const facts = { verb: "create", noun: "key", name: key.name, change: changeOf(key) } as const;
    const stored = await store.keys.create({
      ...key,
      digest: keyDigest(secret),
      by: this.#actor.who,
      audit: auditEntry(this.#actor, facts),
    });
    if (stored === null) throw new KeyTakenError(key.name);
    return { ...toKey(stored), secret };
  }

  /** Every key by name. One that has expired is listed for thirty more days. */
  async list(): Promise<readonly AccessKey[]> {
    return (await (await this.#store()).keys.list()).map(toKey);
  }

  /** Revokes a key at once on every instance, and ends its sessions. */
  async revoke(name: string): Promise<void> {
    const key = requireName(name, "keys.revoke().name");
    const store = await this.#store();
    const audit = auditEntry(this.#actor, { verb: "revoke", noun: "key", name: key });
    if (!(await store.keys.revoke({ name: key, audit }))) throw new KeyNotFoundError(key);
  }
}

/** Whether a text has the form of a key's secret; any other text needs no read of the database. */
export function isKeySecret(text: string): boolean {
  return SECRET.test(text);
}

/** The secret has 244 random bits and cannot be guessed, so a plain digest is enough. */
export function keyDigest(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

type ReadKey = {
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly jobs: readonly string[] | null;
  readonly queues: readonly string[] | null;
  readonly lifeMs: number | null;
};

function readKey(given: string, options: KeyOptions): ReadKey {
  const name = requireName(given, "keys.create().name");
  requireOptions(options, "keys.create()");
  const problems: Problem[] = refuseUnknownMembers(options, MEMBERS, "keys.create()");
  const { scopes, jobs, queues, expires } = options;
  if (RESERVED.includes(name))
    problems.push({ field: "keys.create().name", message: `must not be ${RESERVED.join(" or ")}` });
  const isScopes = Array.isArray(scopes) && scopes.length > 0 && scopes.every(isScope);
  if (!isScopes)
    problems.push({
      field: "keys.create().scopes",
      message: `must be some of ${SCOPES.join(", ")}, such as ["enqueue"]`,
    });
  const isLimited = jobs !== undefined || queues !== undefined;
  if (isScopes && isLimited && !scopes.every((each) => LIMITABLE_SCOPES.includes(each)))
    problems.push({
      field: "keys.create().scopes",
      message: `can be limited to jobs and queues for ${LIMITABLE_SCOPES.join(", ")} only`,
    });
  if (problems.length > 0) throw new ConfigurationError(problems);
  return {
    name,
    scopes: SCOPES.filter((scope) => scopes.includes(scope)),
    jobs: readNames(jobs, "keys.create().jobs"),
    queues: readNames(queues, "keys.create().queues"),
    lifeMs:
      expires === undefined
        ? null
        : durationMs(expires, "keys.create().expires", { min: LIFE_MIN_MS }),
  };
}

function readNames(names: readonly string[] | undefined, field: string): readonly string[] | null {
  if (names === undefined) return null;
  if (Array.isArray(names) && names.length > 0 && names.length <= NAMES_MAX)
    return [...new Set(names.map((name, at) => requireName(name, `${field}[${at}]`)))];
  const message = `must be 1 to ${NAMES_MAX} names such as ["study"]`;
  throw new ConfigurationError([{ field, message }]);
}

function tooMany(): ConfigurationError {
  const message = `there are ${KEYS_MAX} keys already; revoke one first`;
  return new ConfigurationError([{ field: "keys.create()", message }]);
}

function changeOf({ scopes, jobs, queues, lifeMs }: ReadKey): string {
  const parts = [`scopes ${scopes.join(", ")}`];
  if (jobs !== null) parts.push(`jobs ${jobs.join(", ")}`);
  if (queues !== null) parts.push(`queues ${queues.join(", ")}`);
  if (lifeMs !== null) parts.push(`expires after ${formatDuration(lifeMs)}`);
  return parts.join("; ");
}

function toKey(record: KeyRecord): AccessKey {
  const { name, jobs, queues, createdBy, isExpired, expiresAt, usedAt } = record;
  return {
    name,
    scopes: record.scopes.filter(isScope),
    jobs,
    queues,
    createdAt: new Date(record.createdAt),
    createdBy,
    expiresAt: expiresAt === null ? null : new Date(expiresAt),
    isExpired,
    lastUsedAt: usedAt === null ? null : new Date(usedAt),
  };
}
