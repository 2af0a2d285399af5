// Receives dispatched runs for a service: verifies the signed request, responds 202, and executes the run while it renews the
// lease through the addresses and the token of the dispatch. It works with any server that has Request and Response, and never
// opens a port. `holdfast` exports it and not `holdfast/client`, because node:crypto verifies the signature and the client needs
// nothing of Node.

import { TOLERANCE_MS, verifyDispatch } from "../remote/dispatch/signature.js";
import { ABORT_GRACE_MS } from "../runs/rules/run.js";
import { portableClock } from "../shared/adapters/portable-clock.js";
import { CancelledError, ConfigurationError, type Problem } from "../shared/errors.js";
import { INPUT_BYTES_MAX } from "../shared/json.js";
import { delay } from "../shared/ports.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import { WorkerStoppedError } from "./errors.js";
import { type Handler, HeldRun } from "./held-run.js";
import { type ClaimedRun, Wire } from "./wire.js";

export type ReceiverOptions = {
  /** The target's secret; several while one rotates. */
  readonly secret: string | readonly string[];
  /** The handler of each job. */
  readonly jobs: Readonly<Record<string, Handler>>;
  /** The longest time between two renewals. @default a third of the run's lease */
  readonly heartbeatMs?: number | undefined;
  /** Called with the error of a failed callback; the run goes on. */
  readonly onError?: ((error: unknown) => void) | undefined;
};

export type Receiver = {
  /** Responds 202 and executes the run, or refuses it: 401 without a valid signature, 404 for an unknown job, 413 if too large. */
  receive(request: Request): Promise<Response>;
  /**
   * Takes no more runs and waits for the current ones. Runs that have not ended after `graceMs` (20 s) are aborted and handed
   * back; their attempts do not count.
   */
  stop(options?: { readonly graceMs?: number }): Promise<void>;
};

type Carried =
  | "job"
  | "fence"
  | "attempt"
  | "input"
  | "leaseMs"
  | "timeoutMs"
  | "mode"
  | "nominalAt"
  | "idempotencyKey"
  | "tags"
  | "steps"
  | "waits"
  | "hasMoreSteps";

/** The body of a dispatch; docs/guides/dispatch.md describes it. */
type Dispatch = Pick<ClaimedRun, Carried> & {
  readonly runId: string;
  readonly callbacks: { readonly heartbeat: string };
  readonly token: string;
};

const OPTIONS = ["secret", "jobs", "heartbeatMs", "onError"];
const HEARTBEAT = { method: "POST", path: "/api/runs/{id}/heartbeat" } as const;
const BEAT_AGAIN_MS = 500;
/** More than any input with its envelope needs. A larger body is refused, signed or not. */
const BODY_BYTES_MAX = 4 * INPUT_BYTES_MAX;
/** Each piece costs time of its own, and the sender has shown no secret yet. */
const BODY_PIECES_MAX = 10_000;

export function createReceiver(options: ReceiverOptions): Receiver {
  const { secret, jobs, onError, heartbeatMs = Number.POSITIVE_INFINITY } = checked(options);
  const held = new Map<HeldRun, Promise<void>>();
  /** Accepted requests by id, for as long as a copy would still pass the time check. */
  const taken = new Map<string, number>();
  let isStopping = false;

  const receive = async (request: Request): Promise<Response> => {
    const body = await textOf(request);
    if (body === null)
      return respond(413, `larger than ${BODY_BYTES_MAX} bytes or ${BODY_PIECES_MAX} pieces`);
    const verified = verifyDispatch({ headers: request.headers, body, secrets: secret });
    if (!verified.ok) return respond(401, verified.reason);
    const dispatch = JSON.parse(body) as Dispatch;
    const handler = Object.hasOwn(jobs, dispatch.job) ? jobs[dispatch.job] : undefined;
    if (handler === undefined) return respond(404, `no handler for the job ${dispatch.job}`);
    const nowMs = portableClock.monotonicMs();
    forgetOld(nowMs);
    if (!taken.has(verified.id)) {
      if (isStopping) return respond(503, "stopping");
      begin(dispatch, handler, request.headers.get("traceparent"), nowMs);
      taken.set(verified.id, nowMs);
    }
    return respond(202, "accepted");
  };

  /** The oldest come first, so the loop ends at the first one that stays. */
  const forgetOld = (nowMs: number) => {
    for (const [id, atMs] of taken) {
      if (nowMs - atMs <= 2 * TOLERANCE_MS) return;
      taken.delete(id);
    }
  };

  const begin = (
    dispatch: Dispatch,
    handler: Handler,
    traceparent: string | null,
    sentMs: number,
  ) => {
    const { runId, callbacks, token, ...rest } = dispatch;
    const url = callbacks.heartbeat.slice(0, callbacks.heartbeat.lastIndexOf("/api/runs/"));
    const wire = new Wire({ url, secret: token, fetch: globalThis.fetch });
    const run = { ...rest, id: runId, traceparent };
    const one = new HeldRun({ run, wire, sentMs });
    const over = new AbortController();
    const ended = Promise.all([
      // After the response: the server must know who has the run before it gets calls about it.
      delay(portableClock, 0, over.signal)
        .then(() => one.execute(handler))
        .finally(() => over.abort()),
      keepRenewing({ held: one, wire, heartbeatMs, over: over.signal, onError }),
    ])
      .then(() => undefined)
      .catch((error: unknown) => reportError(onError, error))
      .finally(() => held.delete(one));
    held.set(one, ended);
  };

  const endedWithin = async (waitMs: number) => {
    const over = new AbortController();
    const all = Promise.all(held.values()).then(() => over.abort());
    await Promise.race([all, delay(portableClock, waitMs, over.signal)]);
  };

  return {
    receive,
    stop: async ({ graceMs = 20_000 } = {}) => {
      isStopping = true;
      await endedWithin(graceMs);
      for (const each of held.keys()) each.abort(new WorkerStoppedError());
      // A run that does not end even then keeps its lease until the lease expires.
      await endedWithin(ABORT_GRACE_MS);
    },
  };
}

/** Renews after each third of the lease, and sooner if the last call got no response. */
async function keepRenewing(params: {
  readonly held: HeldRun;
  readonly wire: Wire;
  readonly heartbeatMs: number;
  readonly over: AbortSignal;
  readonly onError: ReceiverOptions["onError"];
}): Promise<void> {
  const { held, wire, over } = params;
  const { id, fence } = held.run;
  let hasRenewed = true;
  while (!over.aborted) {
    const third = held.leaseMs / 3;
    const usualMs = Math.min(third, params.heartbeatMs);
    await delay(portableClock, hasRenewed ? usualMs : Math.min(third, BEAT_AGAIN_MS), over);
    if (over.aborted) return;
    const sentMs = portableClock.monotonicMs();
    try {
      const { leaseMs, cancel } = await wire.call<"beatRun">({
        place: HEARTBEAT,
        params: { id },
        body: { fence },
        isRepeatable: true,
        tries: 1,
        timeoutMs: third,
        signal: over,
      });
      hasRenewed = true;
      held.renewed(leaseMs, sentMs);
      if (cancel) held.abort(new CancelledError(id));
    } catch (error) {
      if (over.aborted) return;
      hasRenewed = false;
      reportError(params.onError, error);
      if (isLost(error)) return held.lost();
      held.stopIfSilent(portableClock.monotonicMs());
    }
  }
}

/** Null: the body is too large or comes in too many pieces, and the rest was not read. */
async function textOf(request: Request): Promise<string | null> {
  const decoder = new TextDecoder();
  const reader = request.body?.getReader();
  let text = "";
  let bytes = 0;
  for (let pieces = 1; reader; pieces += 1) {
    const { done, value } = await reader.read();
    if (done) break;
    bytes += value.byteLength;
    if (bytes > BODY_BYTES_MAX || pieces > BODY_PIECES_MAX) {
      void reader.cancel().catch(() => undefined);
      return null;
    }
    text += decoder.decode(value, { stream: true });
  }
  return text + decoder.decode();
}

function isLost(error: unknown): boolean {
  return (error as { readonly error?: unknown }).error === "lease_lost";
}

function reportError(listener: ReceiverOptions["onError"], error: unknown): void {
  try {
    listener?.(error);
  } catch {
    // An error of the listener must not end a run.
  }
}

function respond(status: number, message: string): Response {
  return Response.json({ message }, { status });
}

function checked(options: ReceiverOptions): ReceiverOptions {
  const problems: Problem[] = [...refuseUnknownMembers(options, OPTIONS, "createReceiver()")];
  const secrets = typeof options.secret === "string" ? [options.secret] : options.secret;
  const isSecret = (each: unknown) => typeof each === "string" && each !== "";
  if (!Array.isArray(secrets) || secrets.length === 0 || !secrets.every(isSecret))
    problems.push({
      field: "createReceiver().secret",
      message: "must be the secret of the target, for example process.env.STUDIES_SECRET",
    });
  const handlers: unknown[] = Object.values(options.jobs ?? {});
  if (handlers.length === 0 || handlers.some((each) => typeof each !== "function"))
    problems.push({
      field: "createReceiver().jobs",
      message:
        "must name a job and its handler, for example { study: async (input, ctx) => result }",
    });
  const { heartbeatMs } = options;
  if (heartbeatMs !== undefined && !(heartbeatMs >= 100))
    problems.push({
      field: "createReceiver().heartbeatMs",
      message: "must be at least 100, for example 30000",
    });
  if (problems.length > 0) throw new ConfigurationError(problems);
  return options;
}
