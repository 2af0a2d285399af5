// Reads the secrets of each scope for access checks: from options, else from the environment; several, by comma, while one
// rotates. Only their digests are kept here; their values go to the list of what logs and stored texts hide. A presented
// secret is compared with every one of them, in constant time, whether or not an earlier one fits: neither its length nor a
// right beginning shows.

import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { LIMITABLE_SCOPES } from "../operations/rules/scopes.js";
import { ConfigurationError, type Problem } from "../shared/errors.js";
import { rememberSecrets } from "../shared/known-secrets.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import { isLimited, type Reach, reachOf } from "./reach.js";
import { SCOPES, type Scope } from "./wire/schemas.js";

/** One secret, or several separated by commas, or a list of secrets, some of them with limits. */
export type SecretOptions = Partial<
  Readonly<Record<Scope, SecretOption | readonly SecretOption[] | undefined>>
>;
export type SecretOption = string | LimitedSecret;

/** A secret for these jobs, or these queues, alone; of the scopes trigger, enqueue and worker. */
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

/** What a caller presented: a configured secret, or a named key. */
export type Credential = Reach & {
  /** Of a named key; callers with a configured secret have none. */
  readonly name: string | null;
  /** Names it in the row of a session, where it must not be given away. */
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

/** All wrong ones are named at once. A secret that is set but empty is a mistake, never "no secret". */
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
          'is set but empty, has an empty part, or is the word "undefined" or "null"; right would be one secret, ' +
          `or several separated by commas (at most ${SECRETS_MAX}); leave it out to keep the scope closed`,
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

/** A secret that is given with limits and without, or with two kinds of limits, would have neither. */
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

/** Empty, or what a program writes where it has nothing: everybody would guess it. */
function isNone(value: string): boolean {
  return value === "" || value === "undefined" || value === "null";
}

function digestOf(secret: string): Buffer {
  return createHash("sha256").update(secret).digest();
}
