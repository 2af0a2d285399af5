// The token that a dispatch gives to its worker: good for one run under one fence, and for nothing
// else. It is made from the target's secret and never stored; whoever holds it learns nothing of the
// secret, and a token of another run, another attempt or another target is refused.

import { fromHex, hmac, isEqualDigest, toHex } from "./hmac.js";

/** Keeps the tokens' key apart from the one that signs requests. */
const KEY_LABEL = "holdfast callback token v1";
const PREFIX = "hfcb1_";

export type TokenGrant = { readonly runId: string; readonly fence: number };

export function callbackToken(grant: TokenGrant, secret: string): string {
  return `${PREFIX}${toHex(digestOf(grant, secret))}`;
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
  const given = token.startsWith(PREFIX) ? fromHex(token.slice(PREFIX.length)) : null;
  if (!isFence || given === null) return false;
  let isRight = false;
  for (const secret of secrets.filter((each) => each !== ""))
    isRight = isEqualDigest(digestOf(grant, secret), given) || isRight;
  return isRight;
}

function digestOf({ runId, fence }: TokenGrant, secret: string): Uint8Array {
  return hmac(hmac(secret, KEY_LABEL), `${runId}.${fence}`);
}
