// HMAC-SHA256, and how digests are compared. By node:crypto, which Deno and Bun have as well: unlike
// WebCrypto it answers at once, so that a simulated clock need not wait for it.

import { createHmac, timingSafeEqual } from "node:crypto";

const DIGEST_BYTES = 32;

export function hmac(secret: string | Uint8Array, text: string | Uint8Array): Uint8Array {
  return createHmac("sha256", secret).update(text).digest();
}

/** How long it takes says nothing about where they differ. */
export function isEqualDigest(left: Uint8Array, right: Uint8Array): boolean {
  const areDigests = left.length === DIGEST_BYTES && right.length === DIGEST_BYTES;
  return areDigests && timingSafeEqual(left, right);
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
