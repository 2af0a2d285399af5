// Reads the secrets of each scope for access checks: from options, else from the environment; several, by comma, while one
// rotates. Only their digests are kept here; their values go to the list of what logs and stored texts hide. A presented
// secret is compared with every one of them, in constant time, whether or not an earlier one fits: neither its length nor a
// right beginning shows.

import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { ConfigurationError, type Problem } from "../core/errors.js";
import { rememberSecrets } from "../core/known-secrets.js";
import { SCOPES, type Scope } from "./contract/words.js";

export type SecretOptions = Partial<Readonly<Record<Scope, string | undefined>>>;
type Environment = Readonly<Record<string, string | undefined>>;

const SECRETS_MAX = 10;

export const SECRET_VARIABLES: Readonly<Record<Scope, string>> = {
  trigger: "HOLDFAST_TRIGGER_SECRET",
  enqueue: "HOLDFAST_ENQUEUE_SECRET",
  worker: "HOLDFAST_WORKER_SECRET",
  read: "HOLDFAST_READ_SECRET",
  admin: "HOLDFAST_ADMIN_SECRET",
};

/** One secret, however many scopes it is set for. */
export type Secret = {
  readonly digest: Buffer;
  /** Names it where it must not be given away. */
  readonly fingerprint: string;
  /** The scopes that it opens; admin opens all of them. */
  readonly scopes: ReadonlySet<Scope>;
};

export class Secrets {
  /** Each secret once. */
  readonly all: readonly Secret[];

  constructor(digests: readonly { readonly scope: Scope; readonly digest: Buffer }[]) {
    const scopesBySecret = new Map<string, Set<Scope>>();
    for (const { scope, digest } of digests) {
      const hex = digest.toString("hex");
      scopesBySecret.set(hex, (scopesBySecret.get(hex) ?? new Set()).add(scope));
    }
    this.all = [...scopesBySecret].map(([hex, scopes]) => {
      const digest = Buffer.from(hex, "hex");
      const fingerprint = createHmac("sha256", digest).update("holdfast session").digest("hex");
      return { digest, fingerprint, scopes: scopes.has("admin") ? new Set(SCOPES) : scopes };
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
  const digests: { scope: Scope; digest: Buffer }[] = [];
  for (const scope of SCOPES) {
    const variable = SECRET_VARIABLES[scope];
    const given = options[scope];
    const [field, text] =
      given === undefined ? [variable, env[variable]] : [`secrets.${scope}`, given];
    if (text === undefined) continue;
    const values = String(text)
      .split(",")
      .map((value) => value.trim());
    if (values.some(isNone) || values.length > SECRETS_MAX) {
      problems.push({
        field,
        message:
          'is set but empty, has an empty part, or is the word "undefined" or "null"; right would be one secret, ' +
          `or several separated by commas (at most ${SECRETS_MAX}); leave it out to keep the scope closed`,
      });
    } else {
      for (const value of values) digests.push({ scope, digest: digestOf(value) });
      rememberSecrets(values);
    }
  }
  if (problems.length > 0) throw new ConfigurationError(problems);
  return new Secrets(digests);
}

/** Empty, or what a program writes where it has nothing: everybody would guess it. */
function isNone(value: string): boolean {
  return value === "" || value === "undefined" || value === "null";
}

function digestOf(secret: string): Buffer {
  return createHash("sha256").update(secret).digest();
}
