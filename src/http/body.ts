// The body of a request: read within its limits of size, time and depth, and parsed. Nothing of a
// body is looked at before it is known to be small enough.

import { systemClock } from "../adapters/clock.js";
import { JSON_DEPTH_MAX } from "../core/json.js";
import { HttpError } from "./problem.js";

export const BODY_BYTES_MAX = 2 * 1024 * 1024;
const BODY_TIMEOUT_MS = 30_000;

/** The parsed body; none at all is an empty object. */
export async function readJson(request: Request): Promise<unknown> {
  const text = await readText(request);
  if (text === "") return {};
  refuseMediaType(request);
  if (isTooDeep(text))
    throw bad("body_too_deep", `The body is nested deeper than ${JSON_DEPTH_MAX} levels.`);
  try {
    return JSON.parse(text);
  } catch {
    throw bad("body_not_json", 'The body is not JSON; right would be {"input": {}}.');
  }
}

function refuseMediaType(request: Request): void {
  const type = (request.headers.get("content-type") ?? "").split(";")[0]?.trim().toLowerCase();
  if (type === "application/json" || type?.endsWith("+json")) return;
  throw new HttpError({
    status: 415,
    error: "media_type_unsupported",
    detail: "The body must be JSON with the header Content-Type: application/json.",
  });
}

async function readText(request: Request): Promise<string> {
  const { body, headers } = request;
  if (body === null) return "";
  const encoding = headers.get("content-encoding");
  if (encoding !== null && encoding !== "identity") {
    throw new HttpError({
      status: 415,
      error: "encoding_unsupported",
      detail: "A compressed body is not accepted.",
    });
  }
  if (Number(headers.get("content-length") ?? 0) > BODY_BYTES_MAX) throw tooLarge();
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const reader = body.getReader();
  const parts: string[] = [];
  let bytes = 0;
  const timer = systemClock.timer(BODY_TIMEOUT_MS, () => {
    void reader.cancel(TOO_SLOW).catch(() => undefined);
  });
  const startedMs = systemClock.monotonicMs();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      bytes += value.byteLength;
      if (bytes > BODY_BYTES_MAX) throw tooLarge();
      parts.push(decoder.decode(value, { stream: true }));
    }
    if (systemClock.monotonicMs() - startedMs >= BODY_TIMEOUT_MS) throw tooSlow();
    return parts.join("") + decoder.decode();
  } catch (error) {
    if (error instanceof TypeError) throw bad("body_not_utf8", "The body is not UTF-8.");
    throw error;
  } finally {
    timer.cancel();
    void reader.cancel().catch(() => undefined);
  }
}

const TOO_SLOW = "too slow";

/** Counted on the text, as a parser that nests is what a deep body is meant to hurt. */
function isTooDeep(text: string): boolean {
  let depth = 0;
  let isInText = false;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (isInText) {
      if (unit === BACKSLASH) i++;
      else if (unit === QUOTE) isInText = false;
    } else if (unit === QUOTE) isInText = true;
    else if (unit === BRACE || unit === BRACKET) {
      depth += 1;
      // The envelope around an input is one level of its own.
      if (depth > JSON_DEPTH_MAX + 1) return true;
    } else if (unit === BRACE_END || unit === BRACKET_END) depth -= 1;
  }
  return false;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const BRACE = 0x7b;
const BRACE_END = 0x7d;
const BRACKET = 0x5b;
const BRACKET_END = 0x5d;

function bad(error: string, detail: string): HttpError {
  return new HttpError({ status: 400, error, detail });
}

function tooLarge(): HttpError {
  return new HttpError({
    status: 413,
    error: "body_too_large",
    detail: `The body is larger than ${BODY_BYTES_MAX} bytes.`,
  });
}

function tooSlow(): HttpError {
  return new HttpError({
    status: 408,
    error: "body_too_slow",
    detail: `The body did not arrive within ${BODY_TIMEOUT_MS / 1_000} s.`,
  });
}
