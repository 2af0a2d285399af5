// Finds the credential that a caller presents, for access checks: a configured secret or a named key.
//
// Configured secrets come from options, else from the environment; several, by comma, while one rotates. Only their digests are
// kept here; their values go to the list of texts that logs and stored texts hide. A presented secret is compared with every
// configured one, in constant time, even after a match, so that timing shows neither its length nor a right beginning.
//
// A named key is looked up by its digest, once for each request and without a cache: a key that was revoked or has expired opens
// nothing from then on, on every instance. A text that does not look like the secret of a key costs no query, and neither does a
// request without one.

import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { Holdfast } from "../holdfast.js";
import { serverInternals } from "../instance/server-internals.js";
import { isKeySecret, keyDigest } from "../operations/keys.js";
import { isScope, LIMITABLE_SCOPES, SCOPES, type Scope } from "../operations/rules/scopes.js";
import { ConfigurationError, type Problem } from "../shared/errors.js";
import { rememberSecrets } from "../shared/known-secrets.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { KeyRecord } from "../store/access/keys.js";
import { isLimited, type Reach, reachOf } from "./reach.js";

/** One secret, or several separated by commas, or a list of secrets, some of them with limits. */
export type SecretOptions = Partial<
  Readonly<Record<Scope, SecretOption | readonly SecretOption[] | undefined>>
>;
export type SecretOption = string | LimitedSecret;

/** A secret for these jobs or queues only, for the scopes trigger, enqueue and worker. */
export type LimitedSecret = Reach & { readonly secret: string };
type Environment = Readonly<Record<string, string | undefined>>;

const SECRETS_MAX = 10;
const LENGTH_MIN = 16;

export const SECRET_VARIABLES: Readonly<Record<Scope, string>> = {
  trigger: "HOLDFAST_TRIGGER_SECRET",
  enqueue: "HOLDFAST_ENQUEUE_SECRET",
  worker: "HOLDFAST_WORKER_SECRET",
  read: "HOLDFAST_READ_SECRET",
  admin: "HOLDFAST_ADMIN_SECRET",
};

/** A configured secret or a named key that a caller presented. */
export type Credential = Reach & {
  /** The name of a named key; null for a configured secret. */
  readonly name: string | null;
  /** Identifies it in the row of a session without revealing it. */
  readonly fingerprint: string;
  /** The scopes that it opens; admin opens all of them. */
  readonly scopes: ReadonlySet<Scope>;
};

/** One configured secret, however many scopes it is set for. */
type Secret = Credential & { readonly digest: Buffer };

type ScopedDigest = Reach & { readonly scope: Scope; readonly digest: Buffer };

export class Secrets {
  /** Each secret once. */
  readonly all: readonly Secret[];

  constructor(digests: readonly ScopedDigest[]) {
    const bySecret = new Map<string, { readonly scopes: Set<Scope>; readonly reach: Reach }>();
    for (const { scope, digest, ...reach } of digests) {
      const hex = digest.toString("hex");
      const known = bySecret.get(hex) ?? { scopes: new Set(), reach };
      known.scopes.add(scope);
      bySecret.set(hex, known);
    }
    this.all = [...bySecret].map(([hex, { scopes, reach }]) => {
      const digest = Buffer.from(hex, "hex");
      const fingerprint = createHmac("sha256", digest).update("holdfast session").digest("hex");
      const all = scopes.has("admin") ? new Set(SCOPES) : scopes;
      return { name: null, digest, fingerprint, scopes: all, ...reach };
    });
  }

  /** Whether a secret opens this scope. */
  opens(scope: Scope): boolean {
    return this.all.some(({ scopes }) => scopes.has(scope));
  }

  get isEmpty(): boolean {
    return this.all.length === 0;
  }

  /** The configured secret that equals the presented one; null if none does. */
  find(presented: string): Secret | null {
    const wanted = digestOf(presented);
    let found: Secret | null = null;
    for (const secret of this.all) if (timingSafeEqual(secret.digest, wanted)) found = secret;
    return found;
  }
}

/** Reports all wrong secrets at once. A secret that is set but empty is a mistake, never "no secret". */
export function readSecrets(options: SecretOptions, env: Environment): Secrets {
  const problems: Problem[] = [];
  const digests: ScopedDigest[] = [];
  for (const scope of SCOPES) {
    const variable = SECRET_VARIABLES[scope];
    const given = options[scope];
    const [field, text] =
      given === undefined ? [variable, env[variable]] : [`secrets.${scope}`, given];
    if (text === undefined) continue;
    const listed = [text].flat() as readonly SecretOption[];
    const limited = listed.filter((each) => typeof each === "object" && each !== null);
    problems.push(...limited.flatMap((each) => limitProblems(each, scope, field)));
    const plain = listed
      .filter((each) => typeof each !== "object" || each === null)
      .flatMap(valuesOf);
    const values = [...plain, ...limited.map(({ secret }) => String(secret).trim())];
    if (values.some(isNone) || values.length > SECRETS_MAX) {
      problems.push({
        field,
        message:
          'is set but empty, has an empty part, or is the word "undefined" or "null"; set one secret, ' +
          `or several separated by commas (at most ${SECRETS_MAX}), or remove it to keep the scope closed`,
      });
    } else if (values.some((value) => value.length < LENGTH_MIN)) {
      problems.push({
        field,
        message:
          `must have at least ${LENGTH_MIN} characters, or it could be guessed; ` +
          "make one with `openssl rand -hex 32`",
      });
    } else {
      for (const value of plain) digests.push({ scope, digest: digestOf(value) });
      for (const { secret, ...reach } of limited)
        digests.push({ scope, digest: digestOf(String(secret).trim()), ...reachOf(reach) });
      rememberSecrets(values);
    }
  }
  problems.push(...contradictions(digests));
  if (problems.length > 0) throw new ConfigurationError(problems);
  return new Secrets(digests);
}

function valuesOf(text: unknown): readonly string[] {
  return String(text)
    .split(",")
    .map((value) => value.trim());
}

function limitProblems(option: LimitedSecret, scope: Scope, field: string): readonly Problem[] {
  const problems: Problem[] = refuseUnknownMembers(option, ["secret", "jobs", "queues"], field);
  const isNames = (list: unknown) =>
    list === undefined ||
    (Array.isArray(list) && list.length > 0 && list.every((each) => typeof each === "string"));
  for (const member of ["jobs", "queues"] as const)
    if (!isNames(option[member]))
      problems.push({ field: `${field}.${member}`, message: 'must be names such as ["study"]' });
  if (isLimited(option) && !LIMITABLE_SCOPES.includes(scope))
    problems.push({
      field,
      message: `can be limited for the scopes ${LIMITABLE_SCOPES.join(", ")} only`,
    });
  return problems;
}

/** A secret that is given both with and without limits, or with two different limits, is ambiguous. */
function contradictions(digests: readonly ScopedDigest[]): readonly Problem[] {
  const seen = new Map<string, string>();
  const isNew = ({ digest, jobs, queues }: ScopedDigest) => {
    const reach = JSON.stringify([jobs, queues]);
    const known = seen.get(digest.toString("hex")) ?? reach;
    seen.set(digest.toString("hex"), known);
    return known === reach;
  };
  if (digests.every(isNew)) return [];
  return [{ field: "secrets", message: "one secret has several limits; give each its own secret" }];
}

/** Empty, or the word that a program writes for a missing value: anybody could guess it. */
function isNone(value: string): boolean {
  return value === "" || value === "undefined" || value === "null";
}

function digestOf(secret: string): Buffer {
  return createHash("sha256").update(secret).digest();
}

// Named keys

/** The fingerprint of a session that belongs to a key; the name is between the colons. */
const KEY_SESSION = /^key:(.+):[0-9a-f]{16}$/;

export class NamedKeys {
  readonly #holdfast: Holdfast;

  constructor(holdfast: Holdfast) {
    this.#holdfast = holdfast;
  }

  /** The key whose secret was presented; null: no valid key has it. */
  async find(presented: string): Promise<Credential | null> {
    return isKeySecret(presented) ? this.#counting({ digest: keyDigest(presented) }) : null;
  }

  /** The key that a session belongs to; null: it belongs to none, or the key is no longer valid. */
  async ofSession(fingerprint: string): Promise<Credential | null> {
    const [, name] = KEY_SESSION.exec(fingerprint) ?? [];
    const key = name === undefined ? null : await this.#counting({ name });
    // A later key of the same name does not count.
    return key?.fingerprint === fingerprint ? key : null;
  }

  /** Whether a key exists that can sign in: not expired, and not limited to jobs or queues. */
  async hasAny(): Promise<boolean> {
    try {
      return await (await this.#store()).keys.hasUnlimited();
    } catch {
      // Nobody can sign in with a key while the database cannot be reached.
      return false;
    }
  }

  async #counting(by: { digest: string } | { name: string }): Promise<Credential | null> {
    const key = await (await this.#store()).keys.get(by);
    if (key === null || key.isExpired) return null;
    if (key.isUseDue) await this.#noteUse(key.name);
    return credentialOf(key);
  }

  /** At most once an hour for each key, over all instances. */
  async #noteUse(name: string): Promise<void> {
    try {
      await (await this.#store()).keys.touch(name);
    } catch {
      // The call itself matters more than a note about it.
    }
  }

  #store() {
    return this.#holdfast[serverInternals].store("keys");
  }
}

function credentialOf({ name, session, scopes, jobs, queues }: KeyRecord): Credential {
  const own = new Set(scopes.filter(isScope));
  return {
    name,
    fingerprint: session,
    scopes: own.has("admin") ? new Set(SCOPES) : own,
    ...(jobs === null ? {} : { jobs }),
    ...(queues === null ? {} : { queues }),
  };
}
