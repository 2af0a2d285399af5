// The token that a dispatch gives to its worker: good for one run under one fence, and for nothing
// else. It is made from the target's secret and never stored; whoever holds it learns nothing of the
// secret, and a token of another run, another attempt or another target is refused.

import { fromHex, hmac, isEqualDigest, toHex } from "./hmac.js";

/** Keeps the tokens' key apart from the one that signs requests. */
const KEY_LABEL = "holdfast callback token v1";
const PREFIX = "hfcb1_";
/** The fence, readable by everybody, comes first: so a token can be judged before a body is read. */
const FENCE_BYTES = 8;

export type TokenGrant = { readonly runId: string; readonly fence: number };

export function callbackToken(grant: TokenGrant, secret: string): string {
  return `${PREFIX}${toHex(bytesOf(grant, secret))}`;
}

/** The fence that a token says it is for; null where it cannot be a token. */
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
