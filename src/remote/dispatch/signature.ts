// Signs dispatches for the dispatcher, and verifies them for workers in any runtime: the signature proves the sender, the
// time and an unchanged body. It covers the raw body: a body that was parsed and written again has another signature.

import { createHmac, timingSafeEqual } from "node:crypto";
import { portableClock } from "../../shared/adapters/portable-clock.js";

const ID_HEADER = "holdfast-id";
/** Whole seconds since 1970, as text. */
const TIMESTAMP_HEADER = "holdfast-timestamp";
/** `v1=` and 64 hexadecimal digits; several, separated by commas, while a secret rotates. */
const SIGNATURE_HEADER = "holdfast-signature";

/** An older request, or one from further in the future, is refused: it may be a replay. */
export const TOLERANCE_MS = 5 * 60_000;
/** More signatures than a rotation needs would only waste time. */
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
  /** The raw body, before parsing. */
  readonly body: string | Uint8Array;
  /** One secret, or several while one rotates. */
  readonly secrets: string | readonly string[];
  /** @default now */
  readonly nowMs?: number | undefined;
};

export type Verified =
  /** A repeated id is a repeated dispatch; workers that store ids can detect it. */
  | { readonly ok: true; readonly id: string; readonly sentAt: Date }
  | {
      readonly ok: false;
      readonly reason: "headers_missing" | "headers_malformed" | "expired" | "signature_wrong";
    };

export function verifyDispatch(params: VerifyParams): Verified {
  const { headers, body, nowMs = portableClock.wallMs() } = params;
  const id = header(headers, ID_HEADER);
  const timestamp = header(headers, TIMESTAMP_HEADER);
  const signatures = header(headers, SIGNATURE_HEADER);
  if (id === null || timestamp === null || signatures === null)
    return { ok: false, reason: "headers_missing" };
  const given = digestsIn(signatures);
  // The id has no dots and the time only digits, so no two requests have the same signed text.
  const isRight = /^[\w-]{1,200}$/.test(id) && /^\d{1,12}$/.test(timestamp) && given !== null;
  if (!isRight) return { ok: false, reason: "headers_malformed" };
  const sentMs = Number(timestamp) * 1_000;
  if (Math.abs(nowMs - sentMs) > TOLERANCE_MS) return { ok: false, reason: "expired" };
  const secrets = (typeof params.secrets === "string" ? [params.secrets] : params.secrets).filter(
    (secret) => secret !== "",
  );
  const signed = signedBytes(id, timestamp, body);
  // Every pair is compared, so that the time taken does not reveal which one matched.
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

// ── the callback token that a dispatch gives to its worker: valid for one run under one fence only. It is derived from the
// target's secret and never stored. It does not reveal the secret, and a token of another run, attempt or target fails. ──

/** Separates the tokens' key from the key that signs requests. */
const KEY_LABEL = "holdfast callback token v1";
const PREFIX = "hfcb1_";
/** The readable fence comes first, so that a token can be checked before the body is read. */
const FENCE_BYTES = 8;

export type TokenGrant = { readonly runId: string; readonly fence: number };

export function callbackToken(grant: TokenGrant, secret: string): string {
  return `${PREFIX}${toHex(bytesOf(grant, secret))}`;
}

/** The fence in a token; null if the text cannot be a token. */
export function fenceOfToken(token: string): number | null {
  const bytes = givenBytes(token);
  if (bytes === null) return null;
  const fence = Buffer.from(bytes).readBigUInt64BE();
  return fence > 0n && fence <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(fence) : null;
}

/**
 * Whether the token was made for this run and fence. `secrets` are those of the target of the run's job,
 * never of all targets: the worker of one target knows its own secret and could make tokens for others.
 */
export function isCallbackToken(params: {
  readonly token: string;
  readonly grant: TokenGrant;
  readonly secrets: readonly string[];
}): boolean {
  const { token, grant, secrets } = params;
  const isFence = Number.isSafeInteger(grant.fence) && grant.fence > 0;
  const given = givenBytes(token);
  if (!isFence || given === null) return false;
  let isRight = false;
  for (const secret of secrets.filter((each) => each !== ""))
    isRight = isEqualDigest(bytesOf(grant, secret), given) || isRight;
  return isRight;
}

/** The fence, then 192 bits of a digest over run and fence. */
function bytesOf({ runId, fence }: TokenGrant, secret: string): Uint8Array {
  const bytes = Buffer.alloc(32);
  bytes.writeBigUInt64BE(BigInt(fence));
  bytes.set(hmac(hmac(secret, KEY_LABEL), `${runId}.${fence}`).subarray(0, 24), FENCE_BYTES);
  return bytes;
}

function givenBytes(token: string): Uint8Array | null {
  return token.startsWith(PREFIX) ? fromHex(token.slice(PREFIX.length)) : null;
}

// ── HMAC-SHA256 and the comparison of digests, by node:crypto, which Deno and Bun have as well. Unlike WebCrypto it is
// synchronous, so that a simulated clock need not wait for it. ──

const DIGEST_BYTES = 32;

export function hmac(secret: string | Uint8Array, text: string | Uint8Array): Uint8Array {
  return createHmac("sha256", secret).update(text).digest();
}

/** Compares in constant time. */
export function isEqualDigest(left: Uint8Array, right: Uint8Array): boolean {
  const areDigests = left.length === DIGEST_BYTES && right.length === DIGEST_BYTES;
  return areDigests && timingSafeEqual(left, right);
}

function toHex(digest: Uint8Array): string {
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The digest of 64 hexadecimal digits, or null. */
function fromHex(text: string): Uint8Array | null {
  if (!/^[0-9a-f]{64}$/i.test(text)) return null;
  return Uint8Array.from({ length: DIGEST_BYTES }, (_, at) =>
    Number.parseInt(text.slice(at * 2, at * 2 + 2), 16),
  );
}
