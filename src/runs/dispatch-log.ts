// Logs each dispatch of a run, and converts the log lines for users: what was sent to a remote service, and its response.
// Pure. Secrets are removed before anything is stored: the query of the address, and named secrets in the response.

import type { DispatchResult } from "../remote/dispatch/dispatcher.js";
import { encodeResult } from "../shared/json.js";
import { redactBody } from "../shared/redact.js";
import { isTakenAway } from "../store/leases.js";
import type { LogRecord, ReplyLine } from "../store/logs.js";
import type { AttemptRecord } from "../store/runs/runs.js";
import { keptMessage } from "./rules/run-logs.js";

/** How much of a response is stored. */
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
   * "completed" and "failed" ended with the response; "accepted" continues remotely and calls back; "unknown" may have
   * been received; "not_delivered" certainly was not.
   */
  readonly outcome: DispatchResult["kind"];
  /** Null if there was no response. */
  readonly status: number | null;
  /** The beginning of the response, without secrets. */
  readonly answer: string | null;
  /** Why there was no good response, if the status does not say it. */
  readonly error: string | null;
  /** The callback by which the remote service ended the attempt. */
  readonly callback: {
    readonly verb: "complete" | "fail" | "release";
    readonly at: Date;
  } | null;
};

type Kept = Pick<
  RunExchange,
  "durationMs" | "method" | "target" | "url" | "outcome" | "status" | "answer" | "error"
>;

/** The log line of one request and its response. */
export function replyLine(params: {
  readonly grant: { readonly id: string; readonly fence: number; readonly attempt: number };
  readonly target: string;
  readonly url: string;
  readonly result: DispatchResult;
  readonly durationMs: number;
}): ReplyLine {
  const { grant, target, url, result } = params;
  const durationMs = Math.max(0, Math.round(params.durationMs));
  const kept: Kept = {
    method: "POST",
    target,
    url: shownUrl(url),
    durationMs,
    outcome: result.kind,
    ...responseOf(result),
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

function responseOf(result: DispatchResult): Pick<Kept, "status" | "answer" | "error"> {
  switch (result.kind) {
    case "completed":
      return { status: 200, answer: short(result.result), error: null };
    case "accepted":
      return { status: 202, answer: null, error: null };
    case "failed": {
      const { reply, error } = result;
      const { status = null, text = "" } = reply ?? {};
      // A status of 400 or more is its own reason, and the message would repeat the response.
      const isOfStatus = status !== null && status >= 400;
      return {
        status,
        answer: short(text) || null,
        error: isOfStatus ? null : short(error.message),
      };
    }
    case "unknown":
    case "not_delivered":
      return { status: null, answer: null, error: short(result.reason) };
  }
}

/** The query often holds keys of other services; the rest of the address never does. */
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
 * An accepted run ends by a callback, or by being reclaimed. One without a response may also be cancelled by the instance
 * that sent it.
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
