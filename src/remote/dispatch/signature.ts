// The signature of a dispatch: who sent it, when, and that its body is untouched. Signing is done by
// the dispatcher, verifying by workers, in whatever runtime they have. What is signed is the raw
// body: a body that was parsed and written again has another signature.

import { systemClock } from "../../shared/adapters/clock.js";
import { fromHex, hmac, isEqualDigest, toHex } from "./hmac.js";

export const ID_HEADER = "holdfast-id";
/** Whole seconds since 1970, as text. */
export const TIMESTAMP_HEADER = "holdfast-timestamp";
/** `v1=` and 64 hexadecimal digits; several, separated by commas, while a secret rotates. */
export const SIGNATURE_HEADER = "holdfast-signature";

/** A request that is older, or from a clock that is further ahead, is refused: it may be a replay. */
export const TOLERANCE_MS = 5 * 60_000;
/** More signatures than a rotation needs are an attempt to make us work. */
const SIGNATURES_MAX = 10;

export type SignedHeaders = {
  readonly [ID_HEADER]: string;
  readonly [TIMESTAMP_HEADER]: string;
  readonly [SIGNATURE_HEADER]: string;
};

export type SignParams = {
  readonly id: string;
  readonly body: string | Uint8Array;
  /** The newest first; each adds a signature. */
  readonly secrets: readonly string[];
  readonly nowMs: number;
};

export function signDispatch({ id, body, secrets, nowMs }: SignParams): SignedHeaders {
  const timestamp = String(Math.floor(nowMs / 1_000));
  const signed = signedBytes(id, timestamp, body);
  const digests = secrets.map((secret) => hmac(secret, signed));
  return {
    [ID_HEADER]: id,
    [TIMESTAMP_HEADER]: timestamp,
    [SIGNATURE_HEADER]: digests.map((digest) => `v1=${toHex(digest)}`).join(","),
  };
}

/** `Headers` of a request, or the plain object that Node, Express and Fastify have. */
export type RequestHeaders =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

export type VerifyParams = {
  readonly headers: RequestHeaders;
  /** The body as it came, before anything has parsed it. */
  readonly body: string | Uint8Array;
  /** One secret, or several while one rotates. */
  readonly secrets: string | readonly string[];
  /** @default now */
  readonly nowMs?: number | undefined;
};

export type Verified =
  /** The same id again is the same dispatch again: a worker that keeps ids can tell. */
  | { readonly ok: true; readonly id: string; readonly sentAt: Date }
  | {
      readonly ok: false;
      readonly reason: "headers_missing" | "headers_malformed" | "expired" | "signature_wrong";
    };

export function verifyDispatch(params: VerifyParams): Verified {
  const { headers, body, nowMs = systemClock.wallMs() } = params;
  const id = header(headers, ID_HEADER);
  const timestamp = header(headers, TIMESTAMP_HEADER);
  const signatures = header(headers, SIGNATURE_HEADER);
  if (id === null || timestamp === null || signatures === null)
    return { ok: false, reason: "headers_missing" };
  const given = digestsIn(signatures);
  // An id without dots and a time of digits alone: no two requests have the same signed text.
  const isRight = /^[\w-]{1,200}$/.test(id) && /^\d{1,12}$/.test(timestamp) && given !== null;
  if (!isRight) return { ok: false, reason: "headers_malformed" };
  const sentMs = Number(timestamp) * 1_000;
  if (Math.abs(nowMs - sentMs) > TOLERANCE_MS) return { ok: false, reason: "expired" };
  const secrets = (typeof params.secrets === "string" ? [params.secrets] : params.secrets).filter(
    (secret) => secret !== "",
  );
  const signed = signedBytes(id, timestamp, body);
  // Every pair is compared, so that the time taken tells nothing of which one was right.
  let isSigned = false;
  for (const right of secrets.map((secret) => hmac(secret, signed))) {
    for (const digest of given) isSigned = isEqualDigest(right, digest) || isSigned;
  }
  return isSigned
    ? { ok: true, id, sentAt: new Date(sentMs) }
    : { ok: false, reason: "signature_wrong" };
}

function signedBytes(id: string, timestamp: string, body: string | Uint8Array): Uint8Array {
  const encoder = new TextEncoder();
  const head = encoder.encode(`${id}.${timestamp}.`);
  const tail = typeof body === "string" ? encoder.encode(body) : body;
  const signed = new Uint8Array(head.length + tail.length);
  signed.set(head);
  signed.set(tail, head.length);
  return signed;
}

/** Digests of the versions that are known; null if there is none, or something else. */
function digestsIn(signatures: string): readonly Uint8Array[] | null {
  const parts = signatures.split(",", SIGNATURES_MAX + 1);
  if (parts.length > SIGNATURES_MAX) return null;
  const known = parts.map((part) => part.trim()).filter((part) => part.startsWith("v1="));
  const digests = known.map((part) => fromHex(part.slice(3)));
  return digests.length > 0 && digests.every((digest) => digest !== null) ? digests : null;
}

/** One header; one that was sent twice is none. */
function header(headers: RequestHeaders, name: string): string | null {
  const value = isHeaders(headers) ? headers.get(name) : headers[name];
  return typeof value === "string" && value !== "" && value.length <= 2_000 ? value : null;
}

function isHeaders(headers: RequestHeaders): headers is { get(name: string): string | null } {
  return typeof headers.get === "function";
}
