// From what a target answered to what becomes of the attempt. The instance renews the run's lease only
// while its request is open: whoever may have received it keeps it until the lease has run out, and
// only what certainly was not received goes back at once. What was sent and what came back is kept with
// the run before anything becomes of it.

import { replyLine } from "../runs/dispatch-log.js";
import { CancelledError, ShutdownError, TimeoutError } from "../shared/errors.js";
import { describeFailure, type StoredError, storedError } from "../shared/failure.js";
import { type Clock, delay } from "../shared/ports.js";
import type { ReplyLine } from "../store/logs.js";
import type { Emit } from "../telemetry/log.js";
import type { Tracing } from "../telemetry/tracing.js";
import type { ActiveAttempt, Dispatch, LetGo } from "../worker/attempt.js";
import { factsOf, type Report } from "../worker/settlement.js";
import type { DispatchAnswer, Dispatcher } from "./dispatch/dispatcher.js";

/** How long an answer waits for the note of it to be stored; it counts for more than its note. */
const NOTE_PATIENCE_MS = 2_000;

export type Sends = Pick<Dispatcher, "dispatch" | "room">;

export function dispatchTo(params: {
  readonly target: string;
  readonly url: string;
  readonly sends: Pick<Sends, "dispatch">;
  readonly clock: Clock;
  readonly keepReply: (line: ReplyLine) => Promise<void>;
  readonly emit: Emit;
  readonly tracing: Tracing | null;
}): Dispatch {
  const { target, url, sends, clock, emit, tracing } = params;
  const note = (line: ReplyLine): Promise<void> => {
    const done = new AbortController();
    // A database that does not answer is heard of when the attempt is settled.
    const kept = params.keepReply(line).catch(() => undefined);
    const late = delay(clock, NOTE_PATIENCE_MS, done.signal);
    return Promise.race([kept, late]).finally(() => done.abort());
  };
  return async (attempt) => {
    const { run, claim } = attempt;
    const input = await attempt.plainInput();
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
        },
        signal: attempt.signal(),
        ...(traceparent === undefined ? {} : { traceparent }),
      });
    const sentMs = clock.monotonicMs();
    const answer = await (tracing
      ? tracing.dispatch({ target, run: run.id, job: claim.job }, send)
      : send(run.trace));
    const grant = { id: run.id, fence: claim.fence, attempt: claim.attempt };
    const durationMs = clock.monotonicMs() - sentMs;
    await note(replyLine({ grant, target, url, answer, durationMs }));
    if (answer.kind === "not_delivered" && !attempt.stopReason) {
      const { reason, pauseMs } = answer;
      emit("run.undelivered", { ...factsOf(attempt), target, reason, pauseMs });
    }
    return reportOf(answer, attempt);
  };
}

function reportOf(answer: DispatchAnswer, attempt: ActiveAttempt): Report | LetGo {
  switch (answer.kind) {
    case "completed":
      return {
        ending: { kind: "completed" },
        result: answer.result,
        error: null,
        value: JSON.parse(answer.result),
      };
    case "accepted":
      return { letGo: "accepted", reason: "" };
    case "failed": {
      const { error, isPermanent, retryAfterMs } = answer;
      const after = retryAfterMs === undefined ? {} : { retryAfterMs };
      return {
        ending: { kind: "failed", isTransient: !isPermanent, ...after },
        result: null,
        error,
        value: thrownFor(error),
      };
    }
    case "unknown":
      // Its worker hears of the cancel by its next call, and what it says then comes too late.
      return attempt.stopReason instanceof CancelledError
        ? cancelled(attempt.stopReason)
        : { letGo: "unknown", reason: answer.reason };
    case "not_delivered":
      return undelivered(answer, attempt);
  }
}

function undelivered(
  { reason, pauseMs }: Extract<DispatchAnswer, { readonly kind: "not_delivered" }>,
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
      // Another instance may well reach it.
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

/** For what surrounds the run, as if it had been thrown here. */
function thrownFor({ name, message, code }: StoredError): Error {
  return Object.assign(new Error(message), { name, code });
}
