// Decides which scopes a request has. A scope is opened by a bearer secret, configured or of a named key, by the page's session,
// by the user's own `authorize`, or, in development and for a peer on this machine only, by nothing at all. Every other scope is closed, and
// the refusal says so.

import type { AccessReport, Refused } from "./access-report.js";
import { BadTries, peerOf } from "./bad-tries.js";
import { tokenRefused } from "./callback.js";
import type { NamedKeys } from "./named-keys.js";
import { isChange, isHere, type Origins } from "./origin.js";
import { HttpError } from "./problem.js";
import { isLimited, type Reach, reachOf } from "./reach.js";
import type { HttpRequest } from "./request.js";
import { type Credential, SECRET_VARIABLES, type Secrets } from "./secrets.js";
import type { Sessions } from "./session.js";
import { SCOPES, type Scope } from "./wire/schemas.js";

/** What the user's own check of a request answers: scopes, and who it is; nothing refuses. */
export type Authorized =
  | readonly Scope[]
  | (Reach & { readonly scopes: readonly Scope[]; readonly by?: string })
  | (Reach & { readonly scope: Scope | readonly Scope[]; readonly actor?: string })
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
  readonly keys: NamedKeys;
  readonly sessions: Sessions;
  readonly origins: Origins;
  readonly authorize: Authorize | null;
  /** Scopes without a secret are open to callers on this machine. */
  readonly isOpenHere: boolean;
  readonly report: AccessReport;
  readonly nowMs: () => number;
};

/** Where a request comes from. */
export type Caller = {
  readonly ask: HttpRequest;
  readonly address: string;
  readonly requestId: string;
};

const BEARER = /^Bearer ([\x21-\x2b\x2d-\x7e]+)$/;
export class Access {
  readonly #params: AccessParams;
  readonly #badTries = new BadTries();

  constructor(params: AccessParams) {
    this.#params = params;
  }

  /** Refuses a change that a page of another origin causes, on every route and whatever opens it. */
  refuseForeignChange(ask: HttpRequest): void {
    if (this.#params.origins.isForeignChange(ask)) throw originRefused();
  }

  /** Everything that the caller may do, provided that it may do this; throws the refusal. */
  async grant(caller: Caller, scope: Scope): Promise<Granted> {
    const { ask, address } = caller;
    const { authorize } = this.#params;
    if (authorize) return checked(await ownGrant(authorize, ask), scope);
    if (ask.headers.has("authorization")) return this.#bySecret(caller, scope);
    const session = await this.#session(ask);
    const open = this.#openScopes(ask, address);
    const scopes = new Set([...open, ...(session?.scopes ?? [])]);
    if (scopes.has(scope)) return { scopes, by: session ? (session.name ?? "page") : "http" };
    if (session) throw missing(scope);
    const { secrets, isOpenHere } = this.#params;
    if (secrets.opens(scope)) throw unauthorized();
    throw isOpenHere ? notHere() : closed(scope);
  }

  /** All that the caller may do without further ado; refuses nobody but a peer that guesses. */
  async standing(caller: Caller): Promise<Standing> {
    const { ask, address } = caller;
    const { authorize, secrets, sessions, keys } = this.#params;
    if (authorize) {
      const granted = await ownGrant(authorize, ask).catch(() => null);
      const scopes = granted?.scopes ?? new Set<Scope>();
      return { scopes: inOrder(scopes), by: granted?.by ?? null, login: "elsewhere" };
    }
    const [, presented] = BEARER.exec(ask.headers.get("authorization") ?? "") ?? [];
    const secret =
      presented === undefined ? await sessions.secretOf(ask) : await this.#judge(caller, presented);
    const own = secret?.scopes ?? [];
    const scopes = inOrder(new Set([...own, ...this.#openScopes(ask, address)]));
    const by = secret ? (secret.name ?? (presented === undefined ? "page" : "http")) : null;
    const canSignIn = !secrets.isEmpty || (await keys.areThere());
    return { scopes, by, login: canSignIn ? "secret" : "none" };
  }

  /** The configured secret or named key that the page presents to begin a session. */
  async secretOf(caller: Caller, presented: string): Promise<Credential> {
    const secret = await this.#judge(caller, presented);
    if (secret === null || isLimited(secret)) throw unauthorized();
    return secret;
  }

  async #bySecret(caller: Caller, scope: Scope): Promise<Granted> {
    const [, presented] = BEARER.exec(caller.ask.headers.get("authorization") ?? "") ?? [];
    const secret = await this.#judge(caller, presented ?? "");
    if (secret === null) throw unauthorized();
    return checked({ scopes: secret.scopes, by: secret.name ?? "http", ...reachOf(secret) }, scope);
  }

  /** The configured secret or named key that was presented; null: it is wrong. A peer that guesses has to wait first. */
  async #judge(caller: Caller, presented: string): Promise<Credential | null> {
    const peer = peerOf(caller.ask, caller.address);
    const waitS = peer === null ? 0 : this.#badTries.waitS(peer, this.#params.nowMs());
    if (waitS > 0) throw tooManyTries(waitS);
    const { secrets, keys } = this.#params;
    const secret = secrets.find(presented) ?? (await keys.find(presented));
    if (secret === null) await this.#noteWrong(caller, "secret");
    return secret;
  }

  /** A browser sends its cookie by itself, so a change must also come from our own page. */
  async #session(ask: HttpRequest): Promise<Credential | null> {
    const secret = await this.#params.sessions.secretOf(ask);
    // A secret with limits has no sessions: the page is not for it.
    if (secret === null || isLimited(secret)) return null;
    if (isChange(ask) && !this.#params.origins.isFromOwnPage(ask)) throw originRefused();
    return secret;
  }

  /** Scopes without a secret, for a peer on this machine. No cookie has a part in it. */
  #openScopes(ask: HttpRequest, address: string): readonly Scope[] {
    const { secrets, isOpenHere } = this.#params;
    if (!isOpenHere || !isHere(ask, address)) return [];
    return SCOPES.filter((scope) => !secrets.opens(scope));
  }

  /** A callback token that does not fit counts as a wrong secret does. A right one is never held up. */
  async refuseToken(caller: Caller): Promise<never> {
    await this.#noteWrong(caller, "callback token");
    throw tokenRefused();
  }

  /** Throws where the peer has to wait from now on. */
  async #noteWrong(caller: Caller, what: Refused): Promise<void> {
    const { ask, address, requestId } = caller;
    const peer = peerOf(ask, address) ?? "unknown";
    const waitS = this.#badTries.note(peer, this.#params.nowMs());
    const actor = { via: "http", who: "http", scope: null, address, requestId } as const;
    await this.#params.report.refused(actor, what, waitS);
    if (waitS > 0) throw tooManyTries(waitS);
  }
}

function tooManyTries(waitS: number): HttpError {
  return new HttpError({
    status: 429,
    error: "too_many_tries",
    detail: "Too many wrong secrets came from there; wait before the next one.",
    headers: { "retry-after": String(waitS) },
  });
}

async function ownGrant(authorize: Authorize, ask: HttpRequest): Promise<Granted> {
  const { scopes, by, ...reach } = authorizedOf(await authorize(ask.request));
  if (scopes.length === 0) throw unauthorized();
  // Who may do everything may do each thing.
  const all = new Set(scopes.includes("admin") ? SCOPES : scopes);
  return { scopes: all, by: by ?? "http", ...reach };
}

type OwnAnswer = Reach & { readonly scopes: readonly Scope[]; readonly by?: string | undefined };

function authorizedOf(answer: Authorized): OwnAnswer {
  if (!answer) return { scopes: [] };
  if ("scopes" in answer) return { scopes: answer.scopes, by: answer.by, ...reachOf(answer) };
  if (!("scope" in answer)) return { scopes: answer };
  const { scope, actor } = answer;
  return { scopes: typeof scope === "string" ? [scope] : scope, by: actor, ...reachOf(answer) };
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
