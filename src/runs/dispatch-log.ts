// What was sent to a service elsewhere and what came back, for each time that a run was dispatched: from the
// answer to the line that is kept with the run, and from those lines to what users see. Pure. Secrets are
// taken out before anything is kept: of the address its query, of the answer what is named as one.

import type { DispatchAnswer } from "../remote/dispatch/dispatcher.js";
import { encodeResult } from "../shared/json.js";
import { redactBody } from "../shared/redact.js";
import type { LogRecord, ReplyLine } from "../store/logs.js";
import { isTakenAway } from "../store/record.js";
import type { AttemptRecord } from "../store/store.js";
import { keptMessage } from "./rules/run-logs.js";

/** How much of an answer is kept. */
const TEXT_LENGTH_MAX = 300;
const URL_LENGTH_MAX = 500;

export type RunExchange = {
  readonly attempt: number;
  readonly fence: number;
  /** When it was sent. */
  readonly at: Date;
  readonly durationMs: number;
  readonly method: string;
  /** The name of the target, as in `new Holdfast({ workers })`. */
  readonly target: string;
  /** Without its query. */
  readonly url: string;
  /**
   * "completed" and "failed" were answered at once; "accepted" goes on elsewhere and calls back; "unknown"
   * may have been received; "not_delivered" certainly was not.
   */
  readonly outcome: DispatchAnswer["kind"];
  /** Null where no answer came. */
  readonly status: number | null;
  /** How the answer began, without secrets. */
  readonly answer: string | null;
  /** Why there was no good answer, where the status does not tell. */
  readonly error: string | null;
  /** The call by which whoever received it ended the attempt. */
  readonly callback: {
    readonly verb: "complete" | "fail" | "release";
    readonly at: Date;
  } | null;
};

type Kept = Pick<
  RunExchange,
  "durationMs" | "method" | "target" | "url" | "outcome" | "status" | "answer" | "error"
>;

/** The line that is kept of one request and its answer. */
export function replyLine(params: {
  readonly grant: { readonly id: string; readonly fence: number; readonly attempt: number };
  readonly target: string;
  readonly url: string;
  readonly answer: DispatchAnswer;
  readonly durationMs: number;
}): ReplyLine {
  const { grant, target, url, answer } = params;
  const durationMs = Math.max(0, Math.round(params.durationMs));
  const kept: Kept = {
    method: "POST",
    target,
    url: shownUrl(url),
    durationMs,
    outcome: answer.kind,
    ...cameBack(answer),
  };
  const isWell = kept.outcome === "completed" || kept.outcome === "accepted";
  const why = kept.error === null ? "" : `, ${kept.error}`;
  return {
    ...grant,
    level: isWell ? "info" : "warn",
    agoMs: durationMs,
    message: keptMessage(`POST ${kept.url}: ${kept.status ?? "no answer"}${why}`),
    fields: encodeResult(kept),
  };
}

function cameBack(answer: DispatchAnswer): Pick<Kept, "status" | "answer" | "error"> {
  switch (answer.kind) {
    case "completed":
      return { status: 200, answer: short(answer.result), error: null };
    case "accepted":
      return { status: 202, answer: null, error: null };
    case "failed": {
      const { reply, error } = answer;
      const { status = null, text = "" } = reply ?? {};
      // A status of 400 or more is its own reason, and the message would repeat the words that came with it.
      const isOfStatus = status !== null && status >= 400;
      return {
        status,
        answer: short(text) || null,
        error: isOfStatus ? null : short(error.message),
      };
    }
    case "unknown":
    case "not_delivered":
      return { status: null, answer: null, error: short(answer.reason) };
  }
}

/** Keys of other services are often in the query, and never in what precedes it. */
function shownUrl(url: string): string {
  const [address = ""] = url.split("?", 1);
  return address.slice(0, URL_LENGTH_MAX) + (url.includes("?") ? "?…" : "");
}

function short(text: string): string {
  return redactBody(text, TEXT_LENGTH_MAX);
}

export function toExchanges(
  records: readonly LogRecord[],
  attempts: readonly AttemptRecord[],
): readonly RunExchange[] {
  const ended = new Map(attempts.map((attempt) => [attempt.fence, attempt]));
  return records.map(({ attempt, fence, at, fields }) => {
    const kept = JSON.parse(fields ?? "{}") as Kept;
    const callback = callbackOf(kept.outcome, ended.get(fence));
    return { attempt, fence, at: new Date(at), ...kept, callback };
  });
}

/**
 * A run that was let go ends by a call of whoever has it, or by being taken away. One whose answer never
 * came is also cancelled by the instance that sent it.
 */
function callbackOf(
  outcome: RunExchange["outcome"],
  ended: AttemptRecord | undefined,
): RunExchange["callback"] {
  const isLetGo = outcome === "accepted" || outcome === "unknown";
  if (!ended || !isLetGo || isTakenAway(ended.error)) return null;
  if (ended.end === "cancelled" && outcome === "unknown") return null;
  const verb =
    ended.end === "completed" ? "complete" : ended.end === "handed_back" ? "release" : "fail";
  return { verb, at: new Date(ended.endedAt) };
}
