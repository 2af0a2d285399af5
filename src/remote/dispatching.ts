// Executes an attempt by dispatch, for jobs with a target, and turns the result into the end of the attempt. The instance
// renews the lease only while its request is open. A request that may have been received keeps its run until the lease
// expires; only one that certainly was not received goes back at once. The exchange is logged with the run first.

import { replyLine } from "../runs/dispatch-log.js";
import { CancelledError, ShutdownError, TimeoutError } from "../shared/errors.js";
import { describeFailure, type StoredError, storedError } from "../shared/failure.js";
import { type Clock, delay } from "../shared/ports.js";
import type { ReplyLine } from "../store/logs.js";
import type { Emit } from "../telemetry/log.js";
import type { Tracing } from "../telemetry/tracing.js";
import type { ActiveAttempt, Dispatch } from "../worker/attempt.js";
import type { AttemptView } from "../worker/attempt-view.js";
import { factsOf, type LetGo, type Report } from "../worker/completer.js";
import type { Dispatcher, DispatchResult } from "./dispatch/dispatcher.js";
import type { RemoteSteps } from "./remote-steps.js";

/** How long a result waits for its log line to be stored; the result matters more. */
const NOTE_PATIENCE_MS = 2_000;

export type Sends = Pick<Dispatcher, "dispatch" | "room">;

export function dispatchTo(params: {
  readonly target: string;
  readonly url: string;
  readonly sends: Pick<Sends, "dispatch">;
  readonly clock: Clock;
  readonly keepReply: (line: ReplyLine) => Promise<void>;
  /** What earlier attempts stored. */
  readonly stepsOf: (attempt: AttemptView) => Promise<RemoteSteps>;
  readonly emit: Emit;
  readonly tracing: Tracing | null;
}): Dispatch {
  const { target, url, sends, clock, emit, tracing } = params;
  const note = (line: ReplyLine): Promise<void> => {
    const done = new AbortController();
    // A database failure shows up when the attempt is settled.
    const kept = params.keepReply(line).catch(() => undefined);
    const late = delay(clock, NOTE_PATIENCE_MS, done.signal);
    return Promise.race([kept, late]).finally(() => done.abort());
  };
  return async (attempt) => {
    const { run, claim } = attempt;
    const input = await attempt.plainInput();
    const stored = await params.stepsOf(attempt);
    const send = (traceparent: string | undefined) =>
      sends.dispatch({
        target,
        run: {
          id: run.id,
          fence: claim.fence,
          attempt: claim.attempt,
          job: claim.job,
          input,
          idempotencyKey: run.id,
          leaseMs: claim.policy.leaseMs,
          timeoutMs: claim.policy.timeoutMs,
          mode: run.mode,
          nominalAt: run.nominalAt === null ? null : new Date(run.nominalAt).toISOString(),
          tags: run.tags,
          ...stored,
        },
        signal: attempt.signal(),
        ...(traceparent === undefined ? {} : { traceparent }),
      });
    const sentMs = clock.monotonicMs();
    const result = await (tracing
      ? tracing.dispatch({ target, run: run.id, job: claim.job }, send)
      : send(run.trace));
    const grant = { id: run.id, fence: claim.fence, attempt: claim.attempt };
    const durationMs = clock.monotonicMs() - sentMs;
    await note(replyLine({ grant, target, url, result, durationMs }));
    if (result.kind === "not_delivered" && !attempt.stopReason) {
      const { reason, pauseMs } = result;
      emit("run.undelivered", { ...factsOf(attempt), target, reason, pauseMs });
    }
    return reportOf(result, attempt);
  };
}

function reportOf(result: DispatchResult, attempt: ActiveAttempt): Report | LetGo {
  switch (result.kind) {
    case "completed":
      return {
        ending: { kind: "completed" },
        result: result.result,
        error: null,
        value: JSON.parse(result.result),
      };
    case "accepted":
      return { letGo: "accepted", reason: "" };
    case "failed": {
      const { error, isPermanent, retryAfterMs } = result;
      const isBeyondMax = attempt.job.policy.retry.honoursRetryAfterBeyondMax ?? false;
      const after = retryAfterMs === undefined ? {} : { retryAfterMs, isBeyondMax };
      return {
        ending: { kind: "failed", isTransient: !isPermanent, ...after },
        result: null,
        error,
        value: thrownFor(error),
      };
    }
    case "unknown":
      // The worker learns of the cancel at its next call, and its result then comes too late.
      return attempt.stopReason instanceof CancelledError
        ? cancelled(attempt.stopReason)
        : { letGo: "unknown", reason: result.reason };
    case "not_delivered":
      return undelivered(result, attempt);
  }
}

function undelivered(
  { reason, pauseMs }: Extract<DispatchResult, { readonly kind: "not_delivered" }>,
  { stopReason }: ActiveAttempt,
): Report {
  if (stopReason instanceof CancelledError) return cancelled(stopReason);
  if (stopReason instanceof TimeoutError) {
    return {
      ending: { kind: "timeout" },
      result: null,
      error: describeFailure(stopReason),
      value: stopReason,
    };
  }
  const error = storedError({ code: "NOT_DELIVERED", name: "DispatchError", message: reason });
  return {
    ending: {
      kind: "handed_back",
      // Another instance may reach the target.
      delayMs: stopReason instanceof ShutdownError ? 0 : pauseMs,
    },
    result: null,
    error,
    value: thrownFor(error),
  };
}

function cancelled(reason: CancelledError): Report {
  return {
    ending: { kind: "cancelled" },
    result: null,
    error: describeFailure(reason),
    value: reason,
  };
}

/** The error for hooks, as if it had been thrown here. */
function thrownFor({ name, message, code }: StoredError): Error {
  return Object.assign(new Error(message), { name, code });
}
