// Decides which scopes a request has, for the pipeline. A bearer secret (configured, or of a named key), the page's session or the
// user's own `authorize` opens a scope. In development a peer on this machine needs none of them. Every other scope is closed, and
// the refusal says so.

import type { Holdfast } from "../holdfast.js";
import { serverInternals } from "../instance/server-internals.js";
import { fenceOfToken } from "../remote/dispatch/signature.js";
import { isUuid } from "../shared/id.js";
import { type Credential, type NamedKeys, SECRET_VARIABLES, type Secrets } from "./credentials.js";
import {
  type AccessReport,
  ADDRESS_UNKNOWN,
  GuessThrottle,
  peerOf,
  type Refused,
} from "./guessing.js";
import { isChange, isLocalPeer, type Origins } from "./origin.js";
import { HttpError } from "./problem.js";
import { isLimited, type Reach, reachOf } from "./reach.js";
import type { HttpRequest } from "./request.js";
import type { Sessions } from "./session.js";
import { SCOPES, type Scope } from "./wire/schemas.js";

/** The result of the user's `authorize`: scopes, and who the caller is; nothing refuses the request. */
export type Authorized =
  | readonly Scope[]
  | (Reach & { readonly scopes: readonly Scope[]; readonly by?: string })
  | (Reach & { readonly scope: Scope | readonly Scope[]; readonly actor?: string })
  | null
  | undefined;
export type Authorize = (request: Request) => Authorized | Promise<Authorized>;

/** The scopes of a caller, its name, and the jobs and queues that it is limited to. */
export type Granted = Reach & { readonly scopes: ReadonlySet<Scope>; readonly by: string };

/** The scopes of a caller, and how it could get more. */
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
  readonly isOpenOnLoopback: boolean;
  readonly report: AccessReport;
  readonly nowMs: () => number;
};

/** Where a request comes from. */
export type Caller = {
  readonly request: HttpRequest;
  /** The address of the peer, or of the client that trusted proxies name. */
  readonly address: string;
  readonly requestId: string;
};

const BEARER = /^Bearer ([\x21-\x2b\x2d-\x7e]+)$/;
export class Access {
  readonly #params: AccessParams;
  readonly #throttle = new GuessThrottle();

  constructor(params: AccessParams) {
    this.#params = params;
  }

  /** Refuses a change that a page of another origin sends, on every route and with every credential. */
  refuseForeignChange(request: HttpRequest): void {
    if (this.#params.origins.isForeignChange(request)) throw originRefused();
  }

  /** All scopes of the caller. Throws the refusal if `scope` is not among them. */
  async grant(caller: Caller, scope: Scope): Promise<Granted> {
    const { request, address } = caller;
    const { authorize } = this.#params;
    if (authorize) return checked(await ownGrant(authorize, request), scope);
    if (request.headers.has("authorization")) return this.#bySecret(caller, scope);
    const session = await this.#session(request);
    const open = this.#openScopes(request, address);
    const scopes = new Set([...open, ...(session?.scopes ?? [])]);
    if (scopes.has(scope)) return { scopes, by: session ? (session.name ?? "page") : "http" };
    if (session) throw missing(scope);
    const { secrets, isOpenOnLoopback } = this.#params;
    if (secrets.opens(scope)) throw unauthorized();
    throw isOpenOnLoopback ? remotePeerRefused() : closed(scope);
  }

  /** All scopes of the caller; refuses only a peer that guesses secrets. */
  async standing(caller: Caller): Promise<Standing> {
    const { request, address } = caller;
    const { authorize, secrets, sessions, keys } = this.#params;
    if (authorize) {
      const granted = await ownGrant(authorize, request).catch(() => null);
      const scopes = granted?.scopes ?? new Set<Scope>();
      return { scopes: inOrder(scopes), by: granted?.by ?? null, login: "elsewhere" };
    }
    const [, presented] = BEARER.exec(request.headers.get("authorization") ?? "") ?? [];
    const secret =
      presented === undefined
        ? await sessions.secretOf(request)
        : await this.#judge(caller, presented);
    const own = secret?.scopes ?? [];
    const scopes = inOrder(new Set([...own, ...this.#openScopes(request, address)]));
    const by = secret ? (secret.name ?? (presented === undefined ? "page" : "http")) : null;
    const canSignIn = !secrets.isEmpty || (await keys.hasAny());
    return { scopes, by, login: canSignIn ? "secret" : "none" };
  }

  /** The configured secret or named key that the page presents to begin a session. */
  async secretOf(caller: Caller, presented: string): Promise<Credential> {
    const secret = await this.#judge(caller, presented);
    if (secret === null || isLimited(secret)) throw unauthorized();
    return secret;
  }

  /**
   * Throws if a request that is still being served would be refused by now, because its key was revoked or its session ended.
   * What `authorize` returned counts for the whole request.
   */
  async recheck({ request, address }: Caller, scope: Scope): Promise<void> {
    const { authorize, secrets, keys } = this.#params;
    if (authorize) return;
    const authorization = request.headers.get("authorization");
    if (authorization === null && this.#openScopes(request, address).includes(scope)) return;
    const [, presented = ""] = BEARER.exec(authorization ?? "") ?? [];
    const secret =
      authorization === null
        ? await this.#session(request)
        : (secrets.find(presented) ?? (await keys.find(presented)));
    if (!secret?.scopes.has(scope)) throw unauthorized();
  }

  async #bySecret(caller: Caller, scope: Scope): Promise<Granted> {
    const [, presented] = BEARER.exec(caller.request.headers.get("authorization") ?? "") ?? [];
    const secret = await this.#judge(caller, presented ?? "");
    if (secret === null) throw unauthorized();
    return checked({ scopes: secret.scopes, by: secret.name ?? "http", ...reachOf(secret) }, scope);
  }

  /** The presented secret or named key; null: it is wrong. A peer that guesses has to wait first. */
  async #judge(caller: Caller, presented: string): Promise<Credential | null> {
    this.#refuseGuesser(caller);
    const { secrets, keys } = this.#params;
    const named = await keys.find(presented);
    const secret = secrets.find(presented) ?? named;
    if (secret === null) await this.#noteWrong(caller, "secret");
    // Again, since guesses that come at once all pass the first check.
    else this.#refuseGuesser(caller);
    return secret;
  }

  #refuseGuesser({ address }: Caller): void {
    const peer = peerOf(address);
    const waitS = peer === null ? 0 : this.#throttle.waitS(peer, this.#params.nowMs());
    if (waitS > 0) throw tooManyTries(waitS);
  }

  /** A browser sends its cookie by itself, so a change must also come from our own page. */
  async #session(request: HttpRequest): Promise<Credential | null> {
    const secret = await this.#params.sessions.secretOf(request);
    // A secret with limits has no sessions: the page is not for it.
    if (secret === null || isLimited(secret)) return null;
    if (isChange(request) && !this.#params.origins.isFromOwnPage(request)) throw originRefused();
    return secret;
  }

  /** Scopes without a secret, for a peer on this machine. Cookies play no part. */
  #openScopes(request: HttpRequest, address: string): readonly Scope[] {
    const { secrets, isOpenOnLoopback } = this.#params;
    if (!isOpenOnLoopback || !isLocalPeer(request, address)) return [];
    return SCOPES.filter((scope) => !secrets.opens(scope));
  }

  /** A wrong callback token counts like a wrong secret. A right one never has to wait. */
  async refuseToken(caller: Caller): Promise<never> {
    await this.#noteWrong(caller, "callback token");
    throw tokenRefused();
  }

  /** Throws if the peer has to wait from now on. */
  async #noteWrong(caller: Caller, what: Refused): Promise<void> {
    const { address, requestId } = caller;
    const peer = peerOf(address) ?? ADDRESS_UNKNOWN;
    const waitS = this.#throttle.note(peer, this.#params.nowMs());
    const actor = { via: "http", who: "http", scope: null, address, requestId } as const;
    await this.#params.report.refused(actor, what, waitS);
    if (waitS > 0) throw tooManyTries(waitS);
  }
}

function tooManyTries(waitS: number): HttpError {
  return new HttpError({
    status: 429,
    error: "too_many_tries",
    detail: "Too many wrong secrets came from this address; wait before the next try.",
    headers: { "retry-after": String(waitS) },
  });
}

async function ownGrant(authorize: Authorize, request: HttpRequest): Promise<Granted> {
  const { scopes, by, ...reach } = authorizedOf(await authorize(request.platformRequest));
  if (scopes.length === 0) throw unauthorized();
  // The scope admin includes all others.
  const all = new Set(scopes.includes("admin") ? SCOPES : scopes);
  return { scopes: all, by: by ?? "http", ...reach };
}

type OwnGrant = Reach & { readonly scopes: readonly Scope[]; readonly by?: string | undefined };

function authorizedOf(result: Authorized): OwnGrant {
  if (!result) return { scopes: [] };
  if ("scopes" in result) return { scopes: result.scopes, by: result.by, ...reachOf(result) };
  if (!("scope" in result)) return { scopes: result };
  const { scope, actor } = result;
  return { scopes: typeof scope === "string" ? [scope] : scope, by: actor, ...reachOf(result) };
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

/** The refusal for a peer that is not on this machine while scopes are open on it. */
function remotePeerRefused(): HttpError {
  return new HttpError({
    status: 403,
    error: "host_refused",
    detail:
      "Without a secret only direct callers on this machine are served, not through a proxy. Your own server must " +
      "pass the peer's address to the handler as { remoteAddress }.",
  });
}

function inOrder(scopes: ReadonlySet<Scope>): readonly Scope[] {
  return SCOPES.filter((scope) => scopes.has(scope));
}

// Callback tokens: a dispatch gives its worker a token that opens the calls about that run under that fence and nothing else,
// regardless of secrets. The token is never stored and never logged.

const CALLBACK_TOKEN = /^Bearer (hfcb1_\S+)$/;

/** The callback token of a request; null if it carries none. */
export function callbackTokenOf(request: HttpRequest): string | null {
  return CALLBACK_TOKEN.exec(request.headers.get("authorization") ?? "")?.[1] ?? null;
}

/**
 * The fence that the token was made for; null if the token belongs to another run or was not made by this installation. The
 * store decides whether the fence is still current: a valid token of an earlier attempt gets "too late".
 */
export async function callbackFenceOf(
  holdfast: Holdfast,
  call: { readonly token: string; readonly runId: string },
): Promise<number | null> {
  const runId = call.runId.toLowerCase();
  const fence = fenceOfToken(call.token);
  // A part of an id would find runs, and several of them would be named to a caller that has shown nothing.
  if (fence === null || !isUuid(runId)) return null;
  const run = await holdfast.runs.get(runId);
  if (run === null) return null;
  const grant = { token: call.token, runId, fence, job: run.job };
  return holdfast[serverInternals].isCallbackToken(grant) ? fence : null;
}

/** The same sentence for every mismatch: it must not reveal which runs exist. */
function tokenRefused(): HttpError {
  return new HttpError({
    status: 403,
    error: "token_refused",
    detail: "The callback token is not for this run and fence.",
  });
}
