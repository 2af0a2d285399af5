// The page's session: a signed cookie that says which scopes it opens and until when. Nothing is
// stored but what was ended early: the key changes with the secrets, so rotating them ends all.

import { createHmac, timingSafeEqual } from "node:crypto";
import { systemIds } from "../adapters/chance.js";
import type { Ask } from "./ask.js";
import { SCOPES, type Scope } from "./contract/words.js";

const COOKIE = "holdfast_session";
const LENGTH_MS = 12 * 3_600_000;
const ENDED_MAX = 10_000;
const ids = systemIds();

export class Sessions {
  readonly #key: Buffer;
  readonly #ended = new Set<string>();

  constructor(key: Buffer) {
    this.#key = key;
  }

  /** The value of a Set-Cookie header. */
  begin(params: {
    readonly scopes: ReadonlySet<Scope>;
    readonly nowMs: number;
    readonly path: string;
    readonly isSecure: boolean;
  }): string {
    const { scopes, nowMs } = params;
    const claims = [ids.unique(), nowMs + LENGTH_MS, [...scopes].join("+")].join(".");
    const value = `${claims}.${this.#sign(claims)}`;
    return cookie(value, { ...params, maxAgeS: LENGTH_MS / 1_000 });
  }

  scopesOf(ask: Ask, nowMs: number): ReadonlySet<Scope> {
    const value = cookieOf(ask);
    const [id, until, scopes, signature] = (value ?? "").split(".");
    if (!id || !until || scopes === undefined || !signature) return new Set();
    const expected = Buffer.from(this.#sign([id, until, scopes].join(".")));
    const given = Buffer.from(signature);
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return new Set();
    if (Number(until) <= nowMs || this.#ended.has(id)) return new Set();
    return new Set(scopes.split("+").filter(isScope));
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

  #sign(claims: string): string {
    return createHmac("sha256", this.#key).update(claims).digest("base64url");
  }
}

export function hasSession(ask: Ask): boolean {
  return cookieOf(ask) !== null;
}

function isScope(text: string): text is Scope {
  return (SCOPES as readonly string[]).includes(text);
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
