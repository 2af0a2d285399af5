// Reads and parses the body of a request for the pipeline, within limits of size, time and depth. It looks at nothing in a body
// before the body is known to be small enough.

import { systemClock } from "../shared/adapters/clock.js";
import { isDeeperThan, JSON_DEPTH_MAX } from "../shared/json.js";
import { HttpError } from "./problem.js";
import type { HttpRequest } from "./request.js";

export const BODY_BYTES_MAX = 2 * 1024 * 1024;
/** For callers without a secret so far. It is enough for a sign-in. */
export const OPEN_BODY_BYTES_MAX = 16 * 1024;
const BODY_TIMEOUT_MS = 30_000;
/** Each piece costs memory and time of its own. A network sends a thousand bytes or more in one. */
const PIECES_MAX = 10_000;
/** No route takes as many. To parse and check a body of 180,000 names takes two seconds. */
const MEMBERS_MAX = 100;

/** The parsed body; an empty object if there is none. */
export async function readJson(request: HttpRequest, bytesMax = BODY_BYTES_MAX): Promise<unknown> {
  const text = await readText(request, bytesMax);
  if (text === "") return {};
  refuseMediaType(request);
  // The envelope around an input adds one level.
  if (isDeeperThan(text, JSON_DEPTH_MAX + 1))
    throw bad("body_too_deep", `The body is nested deeper than ${JSON_DEPTH_MAX} levels.`);
  if (hasMoreMembers(text, MEMBERS_MAX))
    throw bad("body_invalid", `The body has more than ${MEMBERS_MAX} members.`);
  try {
    return JSON.parse(text);
  } catch {
    throw bad("body_not_json", 'The body is not JSON; right would be {"input": {}}.');
  }
}

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const OPENING: ReadonlySet<number> = new Set([0x5b, 0x7b]);
const CLOSING: ReadonlySet<number> = new Set([0x5d, 0x7d]);

/** Whether the value itself has more members; those of its members do not count. Reads it as text. */
function hasMoreMembers(text: string, membersMax: number): boolean {
  let members = 1;
  let depth = 0;
  let isInText = false;
  for (let at = 0; at < text.length && members <= membersMax; at += 1) {
    const unit = text.charCodeAt(at);
    if (isInText) {
      if (unit === BACKSLASH) at += 1;
      else if (unit === QUOTE) isInText = false;
    } else if (unit === QUOTE) isInText = true;
    else if (unit === COMMA) members += depth === 1 ? 1 : 0;
    else if (OPENING.has(unit)) depth += 1;
    else if (CLOSING.has(unit)) depth -= 1;
  }
  return members > membersMax;
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
      if (pieces.length > PIECES_MAX) throw tooManyPieces();
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
  const content = pieces.length === 1 && first !== undefined ? first : joined(pieces, bytes);
  try {
    return DECODER.decode(content);
  } catch {
    throw bad("body_not_utf8", "The body is not UTF-8.");
  }
}

function joined(pieces: readonly Uint8Array[], bytes: number): Uint8Array {
  const content = new Uint8Array(bytes);
  let at = 0;
  for (const piece of pieces) {
    content.set(piece, at);
    at += piece.byteLength;
  }
  return content;
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

function tooManyPieces(): HttpError {
  return new HttpError({
    status: 413,
    error: "body_too_large",
    detail: `The body came in more than ${PIECES_MAX} pieces; send larger chunks, or its length.`,
  });
}

function tooSlow(): HttpError {
  return new HttpError({
    status: 408,
    error: "body_too_slow",
    detail: `The body did not arrive within ${BODY_TIMEOUT_MS / 1_000} s.`,
  });
}
