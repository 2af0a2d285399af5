// Signs and verifies the page's session for the access check: a cookie that belongs to one configured secret. The key comes from
// that secret's digest, and the session grants the scopes that the secret has now. The cookie names no scope. Where no secret
// is set there are no sessions. A session ends with its secret.

import { createHmac, timingSafeEqual } from "node:crypto";
import { systemIds } from "../adapters/chance.js";
import type { Ask } from "./ask.js";
import type { Secret, Secrets } from "./secrets.js";

const COOKIE = "holdfast_session";
const LENGTH_MS = 12 * 3_600_000;
/** How far the clocks of two instances may be apart. */
const SKEW_MS = 10 * 60_000;
const ENDED_MAX = 10_000;
const VALUE = /^([0-9a-f-]{36})\.(\d{1,15})\.([\w-]{43})$/;
const ids = systemIds();

export class Sessions {
  readonly #keys: readonly { readonly secret: Secret; readonly key: Buffer }[];
  readonly #ended = new Set<string>();

  constructor(secrets: Secrets) {
    this.#keys = secrets.all.map((secret) => ({ secret, key: keyOf(secret) }));
  }

  /** The value of a Set-Cookie header. */
  begin(params: {
    readonly secret: Secret;
    readonly nowMs: number;
    readonly path: string;
    readonly isSecure: boolean;
  }): string {
    const { secret, nowMs } = params;
    const claims = `${ids.unique()}.${nowMs + LENGTH_MS}`;
    const value = `${claims}.${sign(keyOf(secret), claims)}`;
    return cookie(value, { ...params, maxAgeS: LENGTH_MS / 1_000 });
  }

  /** The secret that the request's session belongs to; null if there is no session that counts. */
  secretOf(ask: Ask, nowMs: number): Secret | null {
    const [, id, until, signature] = VALUE.exec(cookieOf(ask) ?? "") ?? [];
    if (!id || !until || !signature) return null;
    const secret = this.#signerOf(`${id}.${until}`, signature);
    const leftMs = Number(until) - nowMs;
    const isCurrent = leftMs > 0 && leftMs <= LENGTH_MS + SKEW_MS && !this.#ended.has(id);
    return isCurrent ? secret : null;
  }

  /** Ends the session that the request carries; answers with the header that removes the cookie. */
  end(ask: Ask, params: { readonly path: string; readonly isSecure: boolean }): string {
    const [id] = (cookieOf(ask) ?? "").split(".");
    if (id) this.#ended.add(id);
    if (this.#ended.size > ENDED_MAX) {
      const [oldest] = this.#ended;
      if (oldest !== undefined) this.#ended.delete(oldest);
    }
    return cookie("", { ...params, maxAgeS: 0 });
  }

  /** Every key is tried, so that the time does not show which one fits. */
  #signerOf(claims: string, signature: string): Secret | null {
    const given = Buffer.from(signature);
    let signer: Secret | null = null;
    for (const { secret, key } of this.#keys)
      if (timingSafeEqual(Buffer.from(sign(key, claims)), given)) signer = secret;
    return signer;
  }
}

function keyOf({ digest }: Secret): Buffer {
  return createHmac("sha256", digest).update("holdfast session").digest();
}

function sign(key: Buffer, claims: string): string {
  return createHmac("sha256", key).update(claims).digest("base64url");
}

function cookie(
  value: string,
  params: { readonly path: string; readonly isSecure: boolean; readonly maxAgeS: number },
): string {
  const { path, isSecure, maxAgeS } = params;
  const parts = [
    `${COOKIE}=${value}`,
    `Path=${path}`,
    `Max-Age=${maxAgeS}`,
    "HttpOnly",
    "SameSite=Strict",
  ];
  return [...parts, ...(isSecure ? ["Secure"] : [])].join("; ");
}

function cookieOf(ask: Ask): string | null {
  for (const part of (ask.headers.get("cookie") ?? "").split(";")) {
    const [name, ...value] = part.trim().split("=");
    if (name === COOKIE) return value.join("=");
  }
  return null;
}
