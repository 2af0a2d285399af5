// The body of a request: read within its limits of size, time and depth, and parsed. Nothing of a
// body is looked at before it is known to be small enough.

import { systemClock } from "../shared/adapters/clock.js";
import { isDeeperThan, JSON_DEPTH_MAX } from "../shared/json.js";
import { HttpError } from "./problem.js";
import type { HttpRequest } from "./request.js";

export const BODY_BYTES_MAX = 2 * 1024 * 1024;
/** For callers that have shown no secret yet. A sign-in has room in it. */
export const OPEN_BODY_BYTES_MAX = 16 * 1024;
const BODY_TIMEOUT_MS = 30_000;

/** The parsed body; none at all is an empty object. */
export async function readJson(request: HttpRequest, bytesMax = BODY_BYTES_MAX): Promise<unknown> {
  const text = await readText(request, bytesMax);
  if (text === "") return {};
  refuseMediaType(request);
  // The envelope around an input is one level of its own.
  if (isDeeperThan(text, JSON_DEPTH_MAX + 1))
    throw bad("body_too_deep", `The body is nested deeper than ${JSON_DEPTH_MAX} levels.`);
  try {
    return JSON.parse(text);
  } catch {
    throw bad("body_not_json", 'The body is not JSON; right would be {"input": {}}.');
  }
}

function refuseMediaType(request: HttpRequest): void {
  const type = (request.headers.get("content-type") ?? "").split(";")[0]?.trim().toLowerCase();
  if (type === "application/json" || type?.endsWith("+json")) return;
  throw new HttpError({
    status: 415,
    error: "media_type_unsupported",
    detail: "The body must be JSON with the header Content-Type: application/json.",
  });
}

async function readText({ body, headers }: HttpRequest, bytesMax: number): Promise<string> {
  if (body === null) return "";
  const encoding = headers.get("content-encoding");
  if (encoding !== null && encoding !== "identity") {
    throw new HttpError({
      status: 415,
      error: "encoding_unsupported",
      detail: "A compressed body is not accepted.",
    });
  }
  if (Number(headers.get("content-length") ?? 0) > bytesMax) throw tooLarge(bytesMax);
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  const startedMs = systemClock.monotonicMs();
  const timer = systemClock.timer(BODY_TIMEOUT_MS, () => body.cancel());
  try {
    await body.read((piece) => {
      bytes += piece.byteLength;
      if (bytes > bytesMax) throw tooLarge(bytesMax);
      pieces.push(piece);
    });
  } finally {
    timer.cancel();
  }
  if (systemClock.monotonicMs() - startedMs >= BODY_TIMEOUT_MS) throw tooSlow();
  return decoded(pieces, bytes);
}

const DECODER = new TextDecoder("utf-8", { fatal: true });

function decoded(pieces: readonly Uint8Array[], bytes: number): string {
  const [first] = pieces;
  const whole = pieces.length === 1 && first !== undefined ? first : joined(pieces, bytes);
  try {
    return DECODER.decode(whole);
  } catch {
    throw bad("body_not_utf8", "The body is not UTF-8.");
  }
}

function joined(pieces: readonly Uint8Array[], bytes: number): Uint8Array {
  const whole = new Uint8Array(bytes);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.byteLength;
  }
  return whole;
}

function bad(error: string, detail: string): HttpError {
  return new HttpError({ status: 400, error, detail });
}

function tooLarge(bytesMax: number): HttpError {
  return new HttpError({
    status: 413,
    error: "body_too_large",
    detail: `The body is larger than ${bytesMax} bytes.`,
  });
}

function tooSlow(): HttpError {
  return new HttpError({
    status: 408,
    error: "body_too_slow",
    detail: `The body did not arrive within ${BODY_TIMEOUT_MS / 1_000} s.`,
  });
}
