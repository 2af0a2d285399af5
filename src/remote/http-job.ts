// Executes the job `http`: sends one request to a configured origin, through the same guard as dispatches (checked
// addresses, no redirects, limited size and time). A status below 300 is the result; any other fails the attempt by its
// class, and Retry-After is honoured.

import type { JobOptions } from "../runs/rules/job.js";
import { PermanentError } from "../shared/errors.js";
import { formsOf, headerSecrets, hideValues } from "../shared/known-secrets.js";
import type { Clock, Network } from "../shared/ports.js";
import type { RunContext } from "../worker/handler/context.js";
import { type BuiltInJobs, chosenInput, type HttpOrigin, nameOf } from "./built-in-jobs.js";
import { type GuardedResponse, guardedFetch } from "./dispatch/guard.js";

type Input = {
  /** The name of the origin. */
  readonly origin: string;
  /** Path and query. @default "/" */
  readonly path?: string;
  /** @default "GET", with a body "POST" */
  readonly method?: string;
  /** Sent as JSON. */
  readonly body?: unknown;
};
type Result = {
  readonly status: number;
  /** Parsed JSON, else text; cut if it is long. */
  readonly body: unknown;
  readonly isCut: boolean;
};
type Services = { readonly network: Network; readonly clock: Clock };

const BODY_KEPT_MAX = 64 * 1024;
const EXCERPT_MAX = 500;
/** A shorter header is not a secret, and hiding it would hide parts of words. */
const HIDDEN_LENGTH_MIN = 6;
const PATH_LENGTH_MAX = 4_000;

export function httpJob(
  { origins, job }: NonNullable<BuiltInJobs["http"]>,
  services: Services,
): JobOptions & { readonly run: (input: Input, ctx: RunContext) => Promise<Result> } {
  return {
    ...job,
    input: chosenInput<Input>({
      origin: nameOf("origins", [...origins.keys()]),
      path: (value) => (value === undefined || isPath(value) ? null : PATH_WANTED),
      method: (value) =>
        value === undefined || typeof value === "string" ? null : 'must be a text such as "POST"',
      body: () => null,
    }),
    run: (input, ctx) => perform(origins.get(input.origin) as HttpOrigin, input, ctx, services),
  };
}

const PATH_WANTED =
  'must be a path such as "/refresh?all=1": it begins with one "/" and stays at the origin';

/** Accepts only paths that keep the request at the configured origin. */
function isPath(value: unknown): boolean {
  if (typeof value !== "string" || !/^\/(?![/\\])/.test(value)) return false;
  if (value.length > PATH_LENGTH_MAX || /[\s\\#]/.test(value)) return false;
  return URL.canParse(value, "http://origin.invalid");
}

async function perform(
  origin: HttpOrigin,
  { path = "/", body, method = body === undefined ? "GET" : "POST" }: Input,
  ctx: RunContext,
  services: Services,
): Promise<Result> {
  if (!origin.methods.includes(method)) {
    const allowed = origin.methods.join(", ");
    throw new PermanentError(`input.method must be one of ${allowed}, which this origin allows.`, {
      code: "INPUT_INVALID",
    });
  }
  const response = await guardedFetch(
    {
      url: new URL(path, origin.url).href,
      method,
      headers: {
        accept: "application/json, */*;q=0.5",
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        // Delivery is at least once: the receiver may need to detect repetitions.
        "idempotency-key": ctx.idempotencyKey,
        ...origin.headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      timeoutMs: origin.timeoutMs,
      signal: ctx.signal,
      allowPrivateNetwork: origin.allowPrivateNetwork,
    },
    services,
  );
  return judged(response, headerSecrets(origin.headers));
}

/** `hidden`: configured header values, which an origin may echo. */
function judged(response: GuardedResponse, hidden: readonly string[]): Result {
  if (response.kind === "refused")
    throw new PermanentError(`The request was not sent: ${response.reason}.`, {
      code: "TARGET_REFUSED",
    });
  if (response.kind !== "answered")
    throw new HttpError(`No answer: ${response.reason}.`, "NO_ANSWER");
  const { status, headers } = response;
  const { body, isCut } = bodyOf(response, hidden);
  if (status >= 200 && status < 300) return { status, body, isCut };
  const excerpt = typeof body === "string" ? body : JSON.stringify(body);
  const excerptText =
    excerpt === "" || excerpt === "null" ? "." : `: ${excerpt.slice(0, EXCERPT_MAX)}`;
  if (status >= 300 && status < 400)
    throw new PermanentError(`Status ${status}: redirects are not followed.`, {
      code: `HTTP_${status}`,
    });
  throw new HttpError(`Status ${status}${excerptText}`, `HTTP_${status}`, { status, headers });
}

function bodyOf(
  { body, isCut }: Extract<GuardedResponse, { readonly kind: "answered" }>,
  hidden: readonly string[],
) {
  const values = hidden.filter((value) => value.length >= HIDDEN_LENGTH_MIN);
  const forms = values.flatMap((value) => [...formsOf(value)]);
  // Hidden before the cut, which could leave half of a value.
  const text = hideValues(new TextDecoder().decode(body), forms);
  const isLong = isCut || body.byteLength > BODY_KEPT_MAX;
  if (isLong) return { body: text.slice(0, BODY_KEPT_MAX), isCut: true };
  try {
    return { body: text.trim() === "" ? null : (JSON.parse(text) as unknown), isCut: false };
  } catch {
    return { body: text, isCut: false };
  }
}

/** Carries the status and the headers, by which the failure is classified. */
class HttpError extends Error {
  override readonly name = "HttpError";
  readonly code: string;
  readonly status?: number;
  readonly headers?: Headers;
  constructor(
    message: string,
    code: string,
    response?: { readonly status: number; readonly headers: Headers },
  ) {
    super(message);
    this.code = code;
    if (response) Object.assign(this, response);
  }
}
