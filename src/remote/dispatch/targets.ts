// Reads the targets of dispatches from `new Holdfast({ workers })`; there is no other source. Reports all problems at once;
// no message repeats a secret.

import { type Duration, durationMs } from "../../shared/duration.js";
import { ConfigurationError, type Problem } from "../../shared/errors.js";
import { requireName } from "../../shared/names.js";
import { gather } from "../../shared/problems.js";
import { listShort, quoteShort, refuseUnknownMembers, suggest } from "../../shared/suggest.js";
import { refusalOf } from "./guard.js";

export type WorkerTargetOptions = {
  /** Where runs are POSTed to, `https://…`. */
  readonly url: string;
  /** Signs requests and makes callback tokens; several, the newest first, while one rotates. */
  readonly secret: string | readonly string[];
  /** How many requests of this instance are open at the same time. @default 10 */
  readonly concurrency?: number | undefined;
  /** How long one request may take, until its response is complete. @default "60s" */
  readonly timeout?: Duration | undefined;
  /** Whether the URL may lead to loopback, private or link-local addresses. @default false */
  readonly allowPrivateNetwork?: boolean | undefined;
};

export type Target = {
  readonly name: string;
  readonly url: string;
  /** The newest first. */
  readonly secrets: readonly string[];
  readonly concurrency: number;
  readonly timeoutMs: number;
  readonly allowPrivateNetwork: boolean;
};

export type Targets = ReadonlyMap<string, Target>;

const MEMBERS = ["url", "secret", "concurrency", "timeout", "allowPrivateNetwork"];
const CONCURRENCY_DEFAULT = 10;
const CONCURRENCY_MAX = 1_000;
const TIMEOUT_DEFAULT = "60s";
/** A shorter secret could be guessed. */
const SECRET_LENGTH_MIN = 16;
const SECRET_LENGTH_MAX = 1_000;
const SECRETS_MAX = 5;

/** Where workers call back to. */
export type DispatchConfig = { readonly targets: Targets; readonly publicUrl: string | null };

/** Reads `workers` and `publicUrl`. */
export function readDispatch(params: {
  readonly workers: unknown;
  readonly publicUrl: unknown;
  /** The name of the public URL in its source. */
  readonly publicUrlField: string;
}): DispatchConfig {
  const problems: Problem[] = [];
  const targets = readTargets(params.workers, problems);
  const publicUrl = readPublicUrl(params.publicUrl, params.publicUrlField, problems);
  if (problems.length > 0) throw new ConfigurationError(problems);
  return { targets, publicUrl: publicUrl ?? null };
}

/**
 * Sending runs needs a configured callback address: one guessed from the Host of a request would leak tokens to any
 * address that a sender chooses.
 */
export function requirePublicUrl({ targets, publicUrl }: DispatchConfig): void {
  if (publicUrl !== null || targets.size === 0) return;
  const message =
    'is needed with workers, as they call back to it, for example "https://jobs.example.com" ' +
    "(or HOLDFAST_PUBLIC_URL)";
  throw new ConfigurationError([{ field: "publicUrl", message }]);
}

/** Refuses a job whose target does not exist. */
export function refuseUnknownTarget(
  { name, worker }: { readonly name: string; readonly worker: string | null },
  { targets }: DispatchConfig,
): void {
  if (worker === null || targets.has(worker)) return;
  const known = [...targets.keys()];
  const meant = suggest(worker, known);
  const hint = meant === undefined ? "" : ` Did you mean ${quoteShort(meant)}?`;
  const list = known.length === 0 ? "there is none" : listShort(known);
  const message = `must be one of new Holdfast({ workers }), which are: ${list}.${hint}`;
  throw new ConfigurationError([{ field: `job("${name}").worker`, message }]);
}

function readTargets(workers: unknown, problems: Problem[]): Targets {
  const targets = new Map<string, Target>();
  if (workers === undefined) return targets;
  if (!isPlain(workers)) {
    const example = '{ studies: { url: "https://…", secret: process.env.STUDIES_SECRET } }';
    problems.push({ field: "workers", message: `must be an object of targets such as ${example}` });
    return targets;
  }
  for (const [name, options] of Object.entries(workers)) {
    const target = readTarget(name, options, problems);
    if (target) targets.set(name, target);
  }
  return targets;
}

function readTarget(name: string, options: unknown, problems: Problem[]): Target | null {
  const field = `workers.${name}`;
  const before = problems.length;
  const refuse = (member: string, message: string) =>
    void problems.push({ field: `${field}.${member}`, message });
  const read = <T>(take: () => T): T | undefined => gather(problems, take);
  read(() => requireName(name, field));
  if (!isPlain(options)) {
    problems.push({
      field,
      message: 'must be an object such as { url: "https://…", secret: "…" }',
    });
    return null;
  }
  problems.push(...refuseUnknownMembers(options, MEMBERS, field));
  const { url, concurrency = CONCURRENCY_DEFAULT, allowPrivateNetwork = false } = options;
  if (typeof allowPrivateNetwork !== "boolean")
    refuse("allowPrivateNetwork", "must be true or false");
  const wrongUrl = urlProblem(url, allowPrivateNetwork === true);
  if (wrongUrl !== null) refuse("url", wrongUrl);
  const secrets = typeof options.secret === "string" ? [options.secret] : options.secret;
  const wrongSecret = secretProblem(secrets);
  if (wrongSecret !== null) refuse("secret", wrongSecret);
  const isCount = Number.isInteger(concurrency) && Number(concurrency) >= 1;
  if (!isCount || Number(concurrency) > CONCURRENCY_MAX)
    refuse("concurrency", `must be a whole number from 1 to ${CONCURRENCY_MAX}, for example 10`);
  const timeoutMs = read(() =>
    durationMs((options.timeout ?? TIMEOUT_DEFAULT) as Duration, `${field}.timeout`, {
      min: 100,
      max: 24 * 3_600_000,
    }),
  );
  if (problems.length > before || timeoutMs === undefined) return null;
  return {
    name,
    url: String(url),
    secrets: secrets as readonly string[],
    concurrency: Number(concurrency),
    timeoutMs,
    allowPrivateNetwork: allowPrivateNetwork === true,
  };
}

function urlProblem(url: unknown, allowPrivateNetwork: boolean): string | null {
  const right = 'must be an address such as "https://studies.example.com/run"';
  if (typeof url !== "string" || !URL.canParse(url)) return right;
  if (new URL(url).hash !== "") return `${right}, without a fragment`;
  const refusal = refusalOf({ url, method: "POST", allowPrivateNetwork });
  return refusal === null ? null : `${right}; ${refusal}`;
}

function secretProblem(secrets: unknown): string | null {
  const right = `must be a text of ${SECRET_LENGTH_MIN} to ${SECRET_LENGTH_MAX} characters`;
  if (!Array.isArray(secrets)) return `${right}, or a list of them`;
  if (secrets.length === 0 || secrets.length > SECRETS_MAX)
    return `must be 1 to ${SECRETS_MAX} secrets, the newest first`;
  if (secrets.some((secret) => secret === "")) return `${right}; an empty one protects nothing`;
  const isRight = (secret: unknown) =>
    typeof secret === "string" &&
    secret.trim() === secret &&
    secret.length >= SECRET_LENGTH_MIN &&
    secret.length <= SECRET_LENGTH_MAX;
  return secrets.every(isRight) ? null : `${right}, without spaces around it`;
}

/** Without a slash at its end. */
function readPublicUrl(value: unknown, field: string, problems: Problem[]): string | undefined {
  if (value === undefined) return undefined;
  const url = typeof value === "string" && URL.canParse(value) ? new URL(value) : null;
  const isHttp = url?.protocol === "http:" || url?.protocol === "https:";
  const isPlainUrl = isHttp && `${url.username}${url.password}${url.search}${url.hash}` === "";
  if (isPlainUrl) return url.href.replace(/(?<!\/)\/+$/, "");
  const message =
    'must be the address under which workers reach this instance, such as "https://jobs.example.com"';
  problems.push({ field, message });
  return undefined;
}

function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
