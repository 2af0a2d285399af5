// Who may call what. A scope is opened by a bearer secret, by the page's session, by the user's own
// `authorize`, or, in development and on this machine only, by nothing at all. What is not opened is
// closed, and says so.

import type { Ask } from "./ask.js";
import { BadTries } from "./bad-tries.js";
import { tokenRefused } from "./callback.js";
import { SCOPES, type Scope } from "./contract/words.js";
import { HttpError } from "./problem.js";
import { SECRET_VARIABLES, type Secrets } from "./secrets.js";
import { hasSession, type Sessions } from "./session.js";

/** What the user's own check of a request answers: scopes, and who it is; nothing refuses. */
export type Authorized =
  | readonly Scope[]
  | { readonly scopes: readonly Scope[]; readonly by?: string }
  | null
  | undefined;
export type Authorize = (request: Request) => Authorized | Promise<Authorized>;

export type Granted = { readonly scopes: ReadonlySet<Scope>; readonly by: string };

/** What a caller may do, and how it could come to do more. */
export type Standing = {
  readonly scopes: readonly Scope[];
  readonly by: string | null;
  readonly login: "secret" | "elsewhere" | "none";
};

export type AccessParams = {
  readonly secrets: Secrets;
  readonly sessions: Sessions;
  readonly authorize: Authorize | null;
  /** Scopes without a secret are open to callers on this machine. */
  readonly isOpenHere: boolean;
  readonly nowMs: () => number;
};

const BEARER = /^Bearer ([\x21-\x2b\x2d-\x7e]+)$/;
const FORWARDING = [
  "forwarded",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-proto",
  "x-real-ip",
];

export class Access {
  readonly #params: AccessParams;
  readonly #badTries = new BadTries();

  constructor(params: AccessParams) {
    this.#params = params;
  }

  /** Everything that the caller may do, provided that it may do this; throws the refusal. */
  async grant(ask: Ask, scope: Scope, address: string): Promise<Granted> {
    const { authorize } = this.#params;
    if (authorize) return checked(await ownGrant(authorize, ask), scope);
    if (ask.headers.has("authorization")) return this.#bySecret(ask, scope, address);
    if (hasSession(ask)) {
      const granted = this.#bySession(ask);
      if (granted.scopes.size > 0) return checked(granted, scope);
    }
    const { secrets, isOpenHere } = this.#params;
    if (secrets.opens(scope)) throw unauthorized();
    if (!isOpenHere) throw closed(scope);
    refuseFromElsewhere(ask);
    return { scopes: new Set(SCOPES.filter((each) => !secrets.opens(each))), by: "http" };
  }

  /** All that the caller may do without further ado; refuses nobody. */
  async standing(ask: Ask): Promise<Standing> {
    const { authorize, secrets, isOpenHere, sessions, nowMs } = this.#params;
    if (authorize) {
      const granted = await ownGrant(authorize, ask).catch(() => null);
      const scopes = [...(granted?.scopes ?? [])];
      return { scopes: everyScope(scopes), by: granted?.by ?? null, login: "elsewhere" };
    }
    const [, secret] = BEARER.exec(ask.headers.get("authorization") ?? "") ?? [];
    const own = secret === undefined ? sessions.scopesOf(ask, nowMs()) : secrets.scopesOf(secret);
    const isHere = isOpenHere && !isFromElsewhere(ask);
    const open = isHere ? SCOPES.filter((scope) => !secrets.opens(scope)) : [];
    const scopes = everyScope([...own, ...open]);
    const by = own.size > 0 ? (secret === undefined ? "page" : "http") : null;
    return { scopes, by, login: secrets.isEmpty ? "none" : "secret" };
  }

  /** The scopes of a secret that the page presents to begin a session. */
  scopesOfSecret(secret: string, address: string): ReadonlySet<Scope> {
    const scopes = this.#params.secrets.scopesOf(secret);
    if (scopes.size === 0) throw this.#badTry(address);
    return scopes;
  }

  #bySecret(ask: Ask, scope: Scope, address: string): Granted {
    const [, secret] = BEARER.exec(ask.headers.get("authorization") ?? "") ?? [];
    const scopes = secret === undefined ? new Set<Scope>() : this.#params.secrets.scopesOf(secret);
    if (scopes.size === 0) throw this.#badTry(address);
    return checked({ scopes, by: "http" }, scope);
  }

  /** A browser sends its cookie by itself, so a change must also come from our own page. */
  #bySession(ask: Ask): Granted {
    const { sessions, nowMs } = this.#params;
    const isChange = ask.method !== "GET" && ask.method !== "HEAD";
    if (isChange && !isSameOrigin(ask)) throw fromElsewhere();
    return { scopes: sessions.scopesOf(ask, nowMs()), by: "page" };
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
  return { scopes: new Set(scopes), by: by ?? "http" };
}

function checked(granted: Granted, scope: Scope): Granted {
  if (granted.scopes.has(scope) || granted.scopes.has("admin")) return granted;
  throw new HttpError({
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

function fromElsewhere(): HttpError {
  return new HttpError({
    status: 403,
    error: "origin_refused",
    detail: "A change must come from the page itself or carry a secret.",
  });
}

/** Open scopes are for this machine: a page of another origin or a name that leads here is not. */
function refuseFromElsewhere(ask: Ask): void {
  if (!isFromElsewhere(ask)) return;
  throw new HttpError({
    status: 403,
    error: "host_refused",
    detail: "Without a secret only callers on this machine are served, and no proxy between.",
  });
}

function isFromElsewhere(ask: Ask): boolean {
  const host = hostName(ask.headers.get("host") ?? new URL(ask.url).host);
  const origin = ask.headers.get("origin");
  const isHere = isLoopback(host) && (origin === null || isSameOrigin(ask));
  return !isHere || FORWARDING.some((name) => ask.headers.has(name));
}

/** Who may do everything may do each thing. */
function everyScope(scopes: readonly Scope[]): readonly Scope[] {
  return SCOPES.filter((scope) => scopes.includes(scope) || scopes.includes("admin"));
}

function isSameOrigin(ask: Ask): boolean {
  const site = ask.headers.get("sec-fetch-site");
  if (site !== null && site !== "same-origin") return false;
  const origin = ask.headers.get("origin");
  if (origin === null) return site === "same-origin";
  try {
    return new URL(origin).host === (ask.headers.get("host") ?? new URL(ask.url).host);
  } catch {
    return false;
  }
}

function hostName(host: string): string {
  return host.replace(/:\d+$/, "").toLowerCase();
}

function isLoopback(name: string): boolean {
  return name === "localhost" || name === "[::1]" || /^127(\.\d{1,3}){3}$/.test(name);
}
