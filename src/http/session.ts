// Keeps the page's sessions for the access check. A session belongs to the one secret or named key that was presented, and
// grants the scopes that this one has now. The cookie holds a random token and says nothing else; the database holds the
// token's digest and a fingerprint of the secret, or the name of the key. So every instance knows every logout, also after a
// restart, and nobody can sign a cookie of his own. A session ends with its secret or key.

import { createHash } from "node:crypto";
import type { Holdfast } from "../holdfast.js";
import { hosting } from "../instance/server-internals.js";
import { type Actor, auditEntry } from "../operations/rules/audit.js";
import { systemIds } from "../shared/adapters/random.js";
import type { NamedKeys } from "./named-keys.js";
import type { HttpRequest } from "./request.js";
import type { Credential, Secrets } from "./secrets.js";

const COOKIE = "holdfast_session";
const LENGTH_MS = 12 * 3_600_000;
/** Of one secret. Beyond it the oldest ends. */
const SESSIONS_MAX = 1_000;
const TOKEN = /^[0-9a-f]{64}$/;
const ids = systemIds();

type SessionsParams = {
  readonly holdfast: Holdfast;
  readonly secrets: Secrets;
  readonly keys: NamedKeys;
  readonly basePath: string;
  /** Callers come by https, also where the server itself sees none since a proxy before it ends TLS. */
  readonly isHttps: boolean;
};

export class Sessions {
  readonly #params: SessionsParams;

  constructor(params: SessionsParams) {
    this.#params = params;
  }

  /** The value of a Set-Cookie header. */
  async begin(ask: HttpRequest, secret: Credential, actor: Actor): Promise<string> {
    const token = `${ids.unique()}${ids.unique()}`.replaceAll("-", "");
    const change = `scopes ${[...secret.scopes].join(", ")}`;
    const store = await this.#store("beginSession");
    await store.beginSession({
      digest: digestOf(token),
      secret: secret.fingerprint,
      lengthMs: LENGTH_MS,
      keep: SESSIONS_MAX,
      audit: auditEntry(actor, { verb: "begin", noun: "session", name: null, change }),
    });
    return this.#cookie(ask, token, LENGTH_MS / 1_000);
  }

  /** The secret or key that the request's session belongs to; null if there is no session that counts. */
  async secretOf(ask: HttpRequest): Promise<Credential | null> {
    const digest = this.#digestOf(ask);
    if (digest === null) return null;
    const store = await this.#store("sessionSecret");
    const fingerprint = await store.sessionSecret(digest);
    if (fingerprint === null) return null;
    const { secrets, keys } = this.#params;
    const secret = secrets.all.find((each) => each.fingerprint === fingerprint);
    return secret ?? (await keys.ofSession(fingerprint));
  }

  /** Ends the session that the request carries, if there is one; answers with the header that removes the cookie. */
  async end(ask: HttpRequest, actor: Actor): Promise<string> {
    const digest = this.#digestOf(ask);
    if (digest !== null) {
      const audit = auditEntry(actor, { verb: "end", noun: "session", name: null });
      const store = await this.#store("endSession");
      await store.endSession({ digest, audit });
    }
    return this.#cookie(ask, "", 0);
  }

  #store(verb: string) {
    return this.#params.holdfast[hosting].store(verb);
  }

  /** Null: no session can be meant. */
  #digestOf(ask: HttpRequest): string | null {
    const token = this.#valueOf(ask);
    return token !== null && TOKEN.test(token) ? digestOf(token) : null;
  }

  #cookie(ask: HttpRequest, value: string, maxAgeS: number): string {
    const isSecure = this.#isSecure(ask);
    const path = isSecure ? "/" : this.#params.basePath || "/";
    const pair = `${this.#nameOf(ask)}=${value}`;
    const parts = [pair, `Path=${path}`, `Max-Age=${maxAgeS}`, "HttpOnly", "SameSite=Strict"];
    return [...parts, ...(isSecure ? ["Secure"] : [])].join("; ");
  }

  #valueOf(ask: HttpRequest): string | null {
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
  #nameOf(ask: HttpRequest): string {
    const place = this.#params.basePath.replaceAll("/", ".");
    return this.#isSecure(ask) ? `__Host-${COOKIE}${place}` : COOKIE;
  }

  #isSecure(ask: HttpRequest): boolean {
    return this.#params.isHttps || ask.url.startsWith("https:");
  }
}

function digestOf(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}
