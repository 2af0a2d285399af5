// Judges for the access check where a request comes from: from a page of another origin, from the own page, or from a peer on
// this machine. A browser sends cookies, cached passwords and client certificates by itself, whichever page caused the
// request. It also says in Origin and Sec-Fetch-Site which page that was, and no page can change those headers.

import type { Problem } from "../shared/errors.js";
import type { HttpRequest } from "./request.js";

const FORWARDING = [
  "forwarded",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-proto",
  "x-real-ip",
];
/** Browsers add these by themselves once a visitor has signed in. Every other scheme is added by a program. */
const AMBIENT_SCHEME = /^(basic|digest|negotiate|ntlm)\b/i;

export class Origins {
  readonly #own: string | null;
  readonly #trusted: ReadonlySet<string>;

  constructor(params: { readonly publicUrl: string | null; readonly trusted: readonly string[] }) {
    this.#own = params.publicUrl === null ? null : new URL(params.publicUrl).host;
    this.#trusted = new Set(params.trusted.map((origin) => new URL(origin).origin));
  }

  /** Whether a page of another origin causes a change here. A header that only a program adds speaks against it. */
  isForeignChange(ask: HttpRequest): boolean {
    if (!isChange(ask)) return false;
    const authorization = ask.headers.get("authorization");
    if (authorization !== null && !AMBIENT_SCHEME.test(authorization)) return false;
    const origin = ask.headers.get("origin");
    if (origin !== null && this.#trusted.has(origin)) return false;
    return !isOwnSite(ask) || (origin !== null && !this.#isOwn(origin, ask));
  }

  /** Whether the request proves that the own page sent it: the proof that a change by cookie needs. */
  isFromOwnPage(ask: HttpRequest): boolean {
    if (!isOwnSite(ask)) return false;
    const origin = ask.headers.get("origin");
    if (origin === null) return ask.headers.get("sec-fetch-site") === "same-origin";
    return this.#isOwn(origin, ask);
  }

  #isOwn(origin: string, ask: HttpRequest): boolean {
    const host = hostOfOrigin(origin);
    return host !== null && (host === hostOf(ask) || host === this.#own);
  }
}

export function isChange({ method }: HttpRequest): boolean {
  return method !== "GET" && method !== "HEAD";
}

/**
 * Whether the peer is on this machine and speaks for itself: its address is a loopback address, the name that it called
 * is one too (a name that was made to lead here is not), and neither a proxy nor a page of another site stands behind it.
 * A peer whose address the server does not know counts as remote.
 */
export function isHere(ask: HttpRequest, address: string): boolean {
  if (!isLoopbackAddress(address) || !isLoopbackName(hostOf(ask))) return false;
  if (FORWARDING.some((name) => ask.headers.has(name))) return false;
  const origin = ask.headers.get("origin");
  return isOwnSite(ask) && (origin === null || hostOfOrigin(origin) === hostOf(ask));
}

/** The wrong ones of `trustedOrigins`. */
export function originProblems(trusted: unknown): readonly Problem[] {
  if (Array.isArray(trusted) && trusted.every(isOrigin)) return [];
  const message = 'must be a list of origins, for example ["https://console.example.com"]';
  return [{ field: "createHandler().trustedOrigins", message }];
}

function isOrigin(text: unknown): boolean {
  return typeof text === "string" && URL.canParse(text) && new URL(text).origin === text;
}

/** Neither same-site: a neighbour of the same domain is another page. */
function isOwnSite(ask: HttpRequest): boolean {
  const site = ask.headers.get("sec-fetch-site");
  return site === null || site === "same-origin" || site === "none";
}

function hostOf(ask: HttpRequest): string {
  return (ask.headers.get("host") ?? new URL(ask.url).host).toLowerCase();
}

function hostOfOrigin(origin: string): string | null {
  return URL.canParse(origin) ? new URL(origin).host : null;
}

function isLoopbackName(host: string): boolean {
  const name = host.replace(/:\d+$/, "");
  return name === "localhost" || name === "[::1]" || /^127(\.\d{1,3}){3}$/.test(name);
}

function isLoopbackAddress(address: string): boolean {
  return address === "::1" || /^(::ffff:)?127(\.\d{1,3}){3}$/i.test(address);
}
