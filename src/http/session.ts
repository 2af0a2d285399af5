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
  readonly #basePath: string;
  readonly #isHttps: boolean;
  readonly #ended = new Set<string>();

  constructor(params: {
    readonly secrets: Secrets;
    readonly basePath: string;
    /** Callers come by https, also where the server itself sees none: a proxy before it ends TLS. */
    readonly isHttps: boolean;
  }) {
    this.#keys = params.secrets.all.map((secret) => ({ secret, key: keyOf(secret) }));
    this.#basePath = params.basePath;
    this.#isHttps = params.isHttps;
  }

  /** The value of a Set-Cookie header. */
  begin(ask: Ask, secret: Secret, nowMs: number): string {
    const claims = `${ids.unique()}.${nowMs + LENGTH_MS}`;
    const value = `${claims}.${sign(keyOf(secret), claims)}`;
    return this.#cookie(ask, value, LENGTH_MS / 1_000);
  }

  /** The secret that the request's session belongs to; null if there is no session that counts. */
  secretOf(ask: Ask, nowMs: number): Secret | null {
    const [, id, until, signature] = VALUE.exec(this.#valueOf(ask) ?? "") ?? [];
    if (!id || !until || !signature) return null;
    const secret = this.#signerOf(`${id}.${until}`, signature);
    const leftMs = Number(until) - nowMs;
    const isCurrent = leftMs > 0 && leftMs <= LENGTH_MS + SKEW_MS && !this.#ended.has(id);
    return isCurrent ? secret : null;
  }

  /** Ends the session that the request carries; answers with the header that removes the cookie. */
  end(ask: Ask): string {
    const [id] = (this.#valueOf(ask) ?? "").split(".");
    if (id) this.#ended.add(id);
    if (this.#ended.size > ENDED_MAX) {
      const [oldest] = this.#ended;
      if (oldest !== undefined) this.#ended.delete(oldest);
    }
    return this.#cookie(ask, "", 0);
  }

  /** Every key is tried, so that the time does not show which one fits. */
  #signerOf(claims: string, signature: string): Secret | null {
    const given = Buffer.from(signature);
    let signer: Secret | null = null;
    for (const { secret, key } of this.#keys)
      if (timingSafeEqual(Buffer.from(sign(key, claims)), given)) signer = secret;
    return signer;
  }

  #cookie(ask: Ask, value: string, maxAgeS: number): string {
    const isSecure = this.#isSecure(ask);
    const path = isSecure ? "/" : this.#basePath || "/";
    const pair = `${this.#nameOf(ask)}=${value}`;
    const parts = [pair, `Path=${path}`, `Max-Age=${maxAgeS}`, "HttpOnly", "SameSite=Strict"];
    return [...parts, ...(isSecure ? ["Secure"] : [])].join("; ");
  }

  #valueOf(ask: Ask): string | null {
    const wanted = this.#nameOf(ask);
    for (const part of (ask.headers.get("cookie") ?? "").split(";")) {
      const [name, ...value] = part.trim().split("=");
      if (name === wanted) return value.join("=");
    }
    return null;
  }

  /**
   * Browsers take a name with the prefix __Host- from this very host over TLS only, so no neighbour can put a cookie in its place.
   * The prefix demands the path "/". The place of the handler is in the name instead.
   */
  #nameOf(ask: Ask): string {
    return this.#isSecure(ask) ? `__Host-${COOKIE}${this.#basePath.replaceAll("/", ".")}` : COOKIE;
  }

  #isSecure(ask: Ask): boolean {
    return this.#isHttps || ask.url.startsWith("https:");
  }
}

function keyOf({ digest }: Secret): Buffer {
  return createHmac("sha256", digest).update("holdfast session").digest();
}

function sign(key: Buffer, claims: string): string {
  return createHmac("sha256", key).update(claims).digest("base64url");
}
