// Decides which scopes a request has. A scope is opened by a bearer secret, by the page's session, by the user's own
// `authorize`, or, in development and for a peer on this machine only, by nothing at all. Every other scope is closed, and
// the refusal says so.

import type { Ask } from "./ask.js";
import { BadTries } from "./bad-tries.js";
import { tokenRefused } from "./callback.js";
import { SCOPES, type Scope } from "./contract/words.js";
import { isChange, isHere, type Origins } from "./origin.js";
import { HttpError } from "./problem.js";
import { isLimited, type Reach, reachOf } from "./reach.js";
import { SECRET_VARIABLES, type Secret, type Secrets } from "./secrets.js";
import type { Sessions } from "./session.js";

/** What the user's own check of a request answers: scopes, and who it is; nothing refuses. */
export type Authorized =
  | readonly Scope[]
  | (Reach & { readonly scopes: readonly Scope[]; readonly by?: string })
  | null
  | undefined;
export type Authorize = (request: Request) => Authorized | Promise<Authorized>;

/** What a caller may do, in whose name, and, where it is limited, with which jobs and queues. */
export type Granted = Reach & { readonly scopes: ReadonlySet<Scope>; readonly by: string };

/** What a caller may do, and how it could come to do more. */
export type Standing = {
  readonly scopes: readonly Scope[];
  readonly by: string | null;
  readonly login: "secret" | "elsewhere" | "none";
};

export type AccessParams = {
  readonly secrets: Secrets;
  readonly sessions: Sessions;
  readonly origins: Origins;
  readonly authorize: Authorize | null;
  /** Scopes without a secret are open to callers on this machine. */
  readonly isOpenHere: boolean;
  readonly nowMs: () => number;
};

const BEARER = /^Bearer ([\x21-\x2b\x2d-\x7e]+)$/;
export class Access {
  readonly #params: AccessParams;
  readonly #badTries = new BadTries();

  constructor(params: AccessParams) {
    this.#params = params;
  }

  /** Refuses a change that a page of another origin causes, on every route and whatever opens it. */
  refuseForeignChange(ask: Ask): void {
    if (this.#params.origins.isForeignChange(ask)) throw originRefused();
  }

  /** Everything that the caller may do, provided that it may do this; throws the refusal. */
  async grant(ask: Ask, scope: Scope, address: string): Promise<Granted> {
    const { authorize } = this.#params;
    if (authorize) return checked(await ownGrant(authorize, ask), scope);
    if (ask.headers.has("authorization")) return this.#bySecret(ask, scope, address);
    const session = await this.#sessionScopes(ask);
    const open = this.#openScopes(ask, address);
    const scopes = new Set([...open, ...session]);
    if (scopes.has(scope)) return { scopes, by: session.size > 0 ? "page" : "http" };
    if (session.size > 0) throw missing(scope);
    const { secrets, isOpenHere } = this.#params;
    if (secrets.opens(scope)) throw unauthorized();
    throw isOpenHere ? notHere() : closed(scope);
  }

  /** All that the caller may do without further ado; refuses nobody. */
  async standing(ask: Ask, address: string): Promise<Standing> {
    const { authorize, secrets, sessions } = this.#params;
    if (authorize) {
      const granted = await ownGrant(authorize, ask).catch(() => null);
      const scopes = granted?.scopes ?? new Set<Scope>();
      return { scopes: inOrder(scopes), by: granted?.by ?? null, login: "elsewhere" };
    }
    const [, presented] = BEARER.exec(ask.headers.get("authorization") ?? "") ?? [];
    const secret = presented === undefined ? await sessions.secretOf(ask) : secrets.find(presented);
    const own = secret?.scopes ?? [];
    const scopes = inOrder(new Set([...own, ...this.#openScopes(ask, address)]));
    const by = secret ? (presented === undefined ? "page" : "http") : null;
    return { scopes, by, login: secrets.isEmpty ? "none" : "secret" };
  }

  /** The configured secret that the page presents to begin a session. */
  secretOf(presented: string, address: string): Secret {
    const secret = this.#params.secrets.find(presented);
    if (secret === null || isLimited(secret)) throw this.#badTry(address);
    return secret;
  }

  #bySecret(ask: Ask, scope: Scope, address: string): Granted {
    const [, presented] = BEARER.exec(ask.headers.get("authorization") ?? "") ?? [];
    const secret = presented === undefined ? null : this.#params.secrets.find(presented);
    if (secret === null) throw this.#badTry(address);
    return checked({ scopes: secret.scopes, by: "http", ...reachOf(secret) }, scope);
  }

  /** A browser sends its cookie by itself, so a change must also come from our own page. */
  async #sessionScopes(ask: Ask): Promise<ReadonlySet<Scope>> {
    const secret = await this.#params.sessions.secretOf(ask);
    // A secret with limits has no sessions: the page is not for it.
    if (secret === null || isLimited(secret)) return new Set();
    if (isChange(ask) && !this.#params.origins.isFromOwnPage(ask)) throw originRefused();
    return secret.scopes;
  }

  /** Scopes without a secret, for a peer on this machine. No cookie has a part in it. */
  #openScopes(ask: Ask, address: string): readonly Scope[] {
    const { secrets, isOpenHere } = this.#params;
    if (!isOpenHere || !isHere(ask, address)) return [];
    return SCOPES.filter((scope) => !secrets.opens(scope));
  }

  /** A callback token that does not fit counts as a wrong secret does. */
  badToken(address: string): HttpError {
    return this.#badTry(address, tokenRefused);
  }

  #badTry(address: string, refused: () => HttpError = unauthorized): HttpError {
    const waitS = this.#badTries.note(address, this.#params.nowMs());
    if (waitS === 0) return refused();
    return new HttpError({
      status: 429,
      error: "too_many_tries",
      detail: "Too many wrong secrets came from there; wait before the next one.",
      headers: { "retry-after": String(waitS) },
    });
  }
}

async function ownGrant(authorize: Authorize, ask: Ask): Promise<Granted> {
  const answer = await authorize(ask.request);
  const { scopes, by } =
    answer && "scopes" in answer ? answer : { scopes: answer ?? [], by: undefined };
  if (scopes.length === 0) throw unauthorized();
  // Who may do everything may do each thing.
  const all = new Set(scopes.includes("admin") ? SCOPES : scopes);
  return {
    scopes: all,
    by: by ?? "http",
    ...(answer && "scopes" in answer ? reachOf(answer) : {}),
  };
}

function checked(granted: Granted, scope: Scope): Granted {
  if (granted.scopes.has(scope)) return granted;
  throw missing(scope);
}

function missing(scope: Scope): HttpError {
  return new HttpError({
    status: 403,
    error: "scope_missing",
    detail: `This needs the scope "${scope}".`,
  });
}

export function requireScope(granted: Granted, scope: Scope): void {
  checked(granted, scope);
}

/** One sentence for every wrong secret, whatever is wrong with it. */
function unauthorized(): HttpError {
  return new HttpError({
    status: 401,
    error: "unauthorized",
    detail: "A valid secret is needed, in the header Authorization: Bearer <secret>.",
    headers: { "www-authenticate": "Bearer" },
  });
}

function closed(scope: Scope): HttpError {
  return new HttpError({
    status: 403,
    error: "scope_closed",
    detail:
      `The scope "${scope}" is closed: no secret is set for it. ` +
      `Set ${SECRET_VARIABLES[scope]} (or ${SECRET_VARIABLES.admin}) and start again.`,
  });
}

function originRefused(): HttpError {
  return new HttpError({
    status: 403,
    error: "origin_refused",
    detail: "A change must come from the page itself or carry a secret.",
  });
}

/** The answer to a caller for whom the open scopes are closed. */
function notHere(): HttpError {
  return new HttpError({
    status: 403,
    error: "host_refused",
    detail:
      "Without a secret only callers on this machine are served, with no proxy between. A server of your own " +
      "passes the peer's address to the handler, as { remoteAddress }.",
  });
}

function inOrder(scopes: ReadonlySet<Scope>): readonly Scope[] {
  return SCOPES.filter((scope) => scopes.has(scope));
}
