// HMAC-SHA256 by WebCrypto, which every runtime has, and how digests are compared.

export const DIGEST_BYTES = 32;

export async function hmac(
  secret: string | Uint8Array,
  text: string | Uint8Array,
): Promise<Uint8Array> {
  const key = await crypto.subtle.importKey(
    "raw",
    bytes(secret),
    { name: "HMAC", hash: "SHA-256" },
    false,
    ["sign"],
  );
  return new Uint8Array(await crypto.subtle.sign("HMAC", key, bytes(text)));
}

/** Looks at every byte, whatever the first ones are: how long it takes says nothing. */
export function isEqualDigest(left: Uint8Array, right: Uint8Array): boolean {
  let difference = (left.length ^ DIGEST_BYTES) | (right.length ^ DIGEST_BYTES);
  for (let at = 0; at < DIGEST_BYTES; at++) difference |= (left[at] ?? 0) ^ (right[at] ?? 0);
  return difference === 0;
}

export function toHex(digest: Uint8Array): string {
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The digest of 64 hexadecimal digits, or null. */
export function fromHex(text: string): Uint8Array | null {
  if (!/^[0-9a-f]{64}$/i.test(text)) return null;
  return Uint8Array.from({ length: DIGEST_BYTES }, (_, at) =>
    Number.parseInt(text.slice(at * 2, at * 2 + 2), 16),
  );
}

function bytes(value: string | Uint8Array): Uint8Array<ArrayBuffer> {
  return typeof value === "string" ? new TextEncoder().encode(value) : new Uint8Array(value);
}
