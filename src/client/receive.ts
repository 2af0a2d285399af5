// The other end of a dispatch: a service gets runs as signed requests, answers 202, and executes them while
// it renews them through the addresses and the token that came with each. For any server that speaks
// Request and Response; it never opens a port of its own. `holdfast` exports it, and not `holdfast/client`,
// which needs nothing of Node's: a signature is verified by node:crypto.

import { TOLERANCE_MS, verifyDispatch } from "../remote/dispatch/signature.js";
import { ABORT_GRACE_MS } from "../runs/rules/run.js";
import { portableClock } from "../shared/adapters/portable-clock.js";
import { CancelledError, ConfigurationError, type Problem } from "../shared/errors.js";
import { INPUT_BYTES_MAX } from "../shared/json.js";
import { delay } from "../shared/ports.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import { WorkerStoppedError } from "./errors.js";
import { type ClaimedRun, type Handler, Held } from "./held.js";
import { Wire } from "./wire.js";

export type ReceiverOptions = {
  /** The target's secret; several while one rotates. */
  readonly secret: string | readonly string[];
  /** What executes the runs of each job. */
  readonly jobs: Readonly<Record<string, Handler>>;
  /** How often it renews at least. @default a third of the run's lease */
  readonly heartbeatMs?: number | undefined;
  /** Hears of calls back that failed; the run goes on. */
  readonly onError?: ((error: unknown) => void) | undefined;
};

export type Receiver = {
  /** Answers 202 and executes, or refuses: 401 what was not signed, 404 a job it does not know, 413 what is too large. */
  receive(request: Request): Promise<Response>;
  /**
   * Takes no more runs and waits for those it has. What has not ended after `graceMs` (20 s) is told to
   * stop and given back, its attempt not burnt.
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
  | "tags";

/** What a dispatch carries; written in docs/guides/dispatch.md. */
type Order = Pick<ClaimedRun, Carried> & {
  readonly runId: string;
  readonly callbacks: { readonly heartbeat: string };
  readonly token: string;
};

const OPTIONS = ["secret", "jobs", "heartbeatMs", "onError"];
const HEARTBEAT = { method: "POST", path: "/api/runs/{id}/heartbeat" } as const;
const BEAT_AGAIN_MS = 500;
/** An input and what is around it take less. Whoever sends more has no business here, signed or not. */
const BODY_BYTES_MAX = 4 * INPUT_BYTES_MAX;

export function createReceiver(options: ReceiverOptions): Receiver {
  const { secret, jobs, onError, heartbeatMs = Number.POSITIVE_INFINITY } = checked(options);
  const held = new Map<Held, Promise<void>>();
  /** Requests that were taken, by name, as long as a copy of one would still count as new. */
  const taken = new Map<string, number>();
  let isStopping = false;

  const receive = async (request: Request): Promise<Response> => {
    const body = await textOf(request);
    if (body === null) return answer(413, `larger than ${BODY_BYTES_MAX} bytes`);
    const verified = verifyDispatch({ headers: request.headers, body, secrets: secret });
    if (!verified.ok) return answer(401, verified.reason);
    const order = JSON.parse(body) as Order;
    const handler = Object.hasOwn(jobs, order.job) ? jobs[order.job] : undefined;
    if (handler === undefined) return answer(404, `no handler for the job ${order.job}`);
    const nowMs = portableClock.monotonicMs();
    forgetOld(nowMs);
    if (!taken.has(verified.id)) {
      if (isStopping) return answer(503, "told to stop");
      begin(order, handler, request.headers.get("traceparent"), nowMs);
      taken.set(verified.id, nowMs);
    }
    return answer(202, "accepted");
  };

  /** The oldest are first, so no more is looked at than is forgotten. */
  const forgetOld = (nowMs: number) => {
    for (const [id, atMs] of taken) {
      if (nowMs - atMs <= 2 * TOLERANCE_MS) return;
      taken.delete(id);
    }
  };

  const begin = (order: Order, handler: Handler, traceparent: string | null, askedMs: number) => {
    const { runId, callbacks, token, ...rest } = order;
    const url = callbacks.heartbeat.slice(0, callbacks.heartbeat.lastIndexOf("/api/runs/"));
    const wire = new Wire({ url, secret: token, fetch: globalThis.fetch });
    const run = { ...rest, id: runId, traceparent };
    const one = new Held({ run, wire, askedMs });
    const over = new AbortController();
    const ended = Promise.all([
      // After the answer: nothing is told of a run before the server knows who has it.
      delay(portableClock, 0, over.signal)
        .then(() => one.execute(handler))
        .finally(() => over.abort()),
      beatAlways({ held: one, wire, heartbeatMs, over: over.signal, onError }),
    ])
      .then(() => undefined)
      .catch((error: unknown) => hear(onError, error))
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
      // What does not end even then keeps its lease until that runs out.
      await endedWithin(ABORT_GRACE_MS);
    },
  };
}

/** Renews at each third of the lease; sooner where the last call had no answer. */
async function beatAlways(params: {
  readonly held: Held;
  readonly wire: Wire;
  readonly heartbeatMs: number;
  readonly over: AbortSignal;
  readonly onError: ReceiverOptions["onError"];
}): Promise<void> {
  const { held, wire, over } = params;
  const { id, fence } = held.run;
  let isAnswered = true;
  while (!over.aborted) {
    const third = held.leaseMs / 3;
    const usualMs = Math.min(third, params.heartbeatMs);
    await delay(portableClock, isAnswered ? usualMs : Math.min(third, BEAT_AGAIN_MS), over);
    if (over.aborted) return;
    const askedMs = portableClock.monotonicMs();
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
      isAnswered = true;
      held.renewed(leaseMs, askedMs);
      if (cancel) held.abort(new CancelledError(id));
    } catch (error) {
      if (over.aborted) return;
      isAnswered = false;
      hear(params.onError, error);
      if (isLost(error)) return held.lost();
      held.stopIfSilent(portableClock.monotonicMs());
    }
  }
}

/** Null: it is too large, and the rest was not read. */
async function textOf(request: Request): Promise<string | null> {
  const decoder = new TextDecoder();
  const reader = request.body?.getReader();
  let text = "";
  let bytes = 0;
  while (reader) {
    const { done, value } = await reader.read();
    if (done) break;
    bytes += value.byteLength;
    if (bytes > BODY_BYTES_MAX) {
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

function hear(listener: ReceiverOptions["onError"], error: unknown): void {
  try {
    listener?.(error);
  } catch {
    // Whoever listens must not end a run.
  }
}

function answer(status: number, message: string): Response {
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
        "must name a job and what executes it, for example { study: async (input, ctx) => result }",
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
