// Keeps the page's sessions for the access check. A session belongs to the one secret or named key that was presented, and
// grants the scopes that this credential has now. The cookie holds only a random token; the database holds the token's digest and a
// fingerprint of the secret, or the name of the key. So every instance knows every logout, even after a restart, and nobody can
// forge a cookie. A session ends with its secret or key.

import { createHash } from "node:crypto";
import type { Holdfast } from "../holdfast.js";
import { serverInternals } from "../instance/server-internals.js";
import { type Actor, auditEntry } from "../operations/rules/audit.js";
import { systemIds } from "../shared/adapters/random.js";
import type { Credential, NamedKeys, Secrets } from "./credentials.js";
import type { HttpRequest } from "./request.js";

const COOKIE = "holdfast_session";
const LENGTH_MS = 12 * 3_600_000;
/** For one secret; beyond this number the oldest session ends. */
const SESSIONS_MAX = 1_000;
const TOKEN = /^[0-9a-f]{64}$/;
const ids = systemIds();

type SessionsParams = {
  readonly holdfast: Holdfast;
  readonly secrets: Secrets;
  readonly keys: NamedKeys;
  readonly basePath: string;
  /** Callers use https, even if a proxy ends TLS before this server. */
  readonly isHttps: boolean;
};

export class Sessions {
  readonly #params: SessionsParams;

  constructor(params: SessionsParams) {
    this.#params = params;
  }

  /** The value of a Set-Cookie header. */
  async begin(request: HttpRequest, secret: Credential, actor: Actor): Promise<string> {
    const token = `${ids.unique()}${ids.unique()}`.replaceAll("-", "");
    const change = `scopes ${[...secret.scopes].join(", ")}`;
    const store = await this.#store("beginSession");
    await store.sessions.begin({
      digest: digestOf(token),
      secret: secret.fingerprint,
      lengthMs: LENGTH_MS,
      keep: SESSIONS_MAX,
      audit: auditEntry(actor, { verb: "begin", noun: "session", name: null, change }),
    });
    return this.#cookie(request, token, LENGTH_MS / 1_000);
  }

  /** The secret or key that the request's session belongs to; null without a valid session. */
  async secretOf(request: HttpRequest): Promise<Credential | null> {
    const digest = this.#digestOf(request);
    if (digest === null) return null;
    const store = await this.#store("sessionSecret");
    const fingerprint = await store.sessions.secret(digest);
    if (fingerprint === null) return null;
    const { secrets, keys } = this.#params;
    const secret = secrets.all.find((each) => each.fingerprint === fingerprint);
    return secret ?? (await keys.ofSession(fingerprint));
  }

  /** Ends the request's session, if there is one. Returns the header that removes the cookie. */
  async end(request: HttpRequest, actor: Actor): Promise<string> {
    const digest = this.#digestOf(request);
    if (digest !== null) {
      const audit = auditEntry(actor, { verb: "end", noun: "session", name: null });
      const store = await this.#store("endSession");
      await store.sessions.end({ digest, audit });
    }
    return this.#cookie(request, "", 0);
  }

  #store(verb: string) {
    return this.#params.holdfast[serverInternals].store(verb);
  }

  /** Null: the request carries no token of a session. */
  #digestOf(request: HttpRequest): string | null {
    const token = this.#valueOf(request);
    return token !== null && TOKEN.test(token) ? digestOf(token) : null;
  }

  #cookie(request: HttpRequest, value: string, maxAgeS: number): string {
    const isSecure = this.#isSecure(request);
    const path = isSecure ? "/" : this.#params.basePath || "/";
    const pair = `${this.#nameOf(request)}=${value}`;
    const parts = [pair, `Path=${path}`, `Max-Age=${maxAgeS}`, "HttpOnly", "SameSite=Strict"];
    return [...parts, ...(isSecure ? ["Secure"] : [])].join("; ");
  }

  #valueOf(request: HttpRequest): string | null {
    const wanted = this.#nameOf(request);
    for (const part of (request.headers.get("cookie") ?? "").split(";")) {
      const [name, ...value] = part.trim().split("=");
      if (name === wanted) return value.join("=");
    }
    return null;
  }

  /**
   * Browsers accept a name with the prefix __Host- only from this very host over TLS, so no neighbouring host can replace the
   * cookie. The prefix demands the path "/", so the name contains the mount path instead.
   */
  #nameOf(request: HttpRequest): string {
    const place = this.#params.basePath.replaceAll("/", ".");
    return this.#isSecure(request) ? `__Host-${COOKIE}${place}` : COOKIE;
  }

  #isSecure(request: HttpRequest): boolean {
    return this.#params.isHttps || request.url.startsWith("https:");
  }
}

function digestOf(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}
