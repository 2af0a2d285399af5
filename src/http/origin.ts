// Judges where a request comes from: a page of another origin, our own page, a peer on this machine, a client behind proxies. A
// browser sends cookies, cached passwords and client certificates by itself, whichever page caused the request. It also names that
// page in Origin and Sec-Fetch-Site, and no page can change those headers.

import {
  type AddressRange,
  isAddressWithin,
  judgeAddress,
  readAddressRange,
} from "../remote/dispatch/guard.js";
import { ConfigurationError, type Problem } from "../shared/errors.js";
import type { HttpRequest } from "./request.js";

const FORWARDING = [
  "forwarded",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-port",
  "x-forwarded-proto",
  "x-forwarded-server",
  "x-real-ip",
  "x-client-ip",
  "true-client-ip",
  "cf-connecting-ip",
  "via",
];
/** Browsers add these by themselves once a visitor has signed in. A program adds every other scheme. */
const AMBIENT_SCHEME = /^(basic|digest|negotiate|ntlm)\b/i;

export class Origins {
  readonly #own: string | null;
  readonly #trusted: ReadonlySet<string>;
  readonly #hasSecrets: boolean;

  constructor(params: {
    readonly publicUrl: string | null;
    readonly trusted: readonly string[];
    /** Secrets open scopes, so an Authorization header holds one. Under `authorize` a proxy may have added the header. */
    readonly hasSecrets: boolean;
  }) {
    this.#hasSecrets = params.hasSecrets;
    this.#own = params.publicUrl === null ? null : new URL(params.publicUrl).host;
    this.#trusted = new Set(params.trusted.map((origin) => new URL(origin).origin));
  }

  /** Whether a page of another origin sends this change. A header that only programs add with their secret proves that it does not. */
  isForeignChange(request: HttpRequest): boolean {
    if (!isChange(request)) return false;
    const authorization = request.headers.get("authorization");
    const isOfProgram = authorization !== null && !AMBIENT_SCHEME.test(authorization);
    if (this.#hasSecrets && isOfProgram) return false;
    const origin = request.headers.get("origin");
    if (origin !== null && this.#trusted.has(origin)) return false;
    return !isOwnSite(request) || (origin !== null && !this.#isOwn(origin, request));
  }

  /** Whether the request proves that our own page sent it. A change with a cookie needs this proof. */
  isFromOwnPage(request: HttpRequest): boolean {
    if (!isOwnSite(request)) return false;
    const origin = request.headers.get("origin");
    if (origin === null) return request.headers.get("sec-fetch-site") === "same-origin";
    return this.#isOwn(origin, request);
  }

  #isOwn(origin: string, request: HttpRequest): boolean {
    const host = hostOfOrigin(origin);
    return host !== null && (host === hostOf(request) || host === this.#own);
  }
}

export function isChange({ method }: HttpRequest): boolean {
  return method !== "GET" && method !== "HEAD";
}

/**
 * Whether the peer is on this machine and acts for itself: its address and the requested host are loopback (a foreign name that
 * resolves to this machine is not), and neither a proxy nor a page of another site is behind it. A peer whose address the server
 * does not know counts as remote.
 */
export function isLocalPeer(request: HttpRequest, address: string): boolean {
  if (!isLoopbackAddress(address) || !isLoopbackName(hostOf(request))) return false;
  if (FORWARDING.some((name) => request.headers.has(name))) return false;
  const origin = request.headers.get("origin");
  return isOwnSite(request) && (origin === null || hostOfOrigin(origin) === hostOf(request));
}

/** Problems of the option `trustedOrigins`. */
export function originProblems(trusted: unknown): readonly Problem[] {
  if (Array.isArray(trusted) && trusted.every(isOrigin)) return [];
  const message = 'must be a list of origins, for example ["https://console.example.com"]';
  return [{ field: "createHandler().trustedOrigins", message }];
}

function isOrigin(text: unknown): boolean {
  return typeof text === "string" && URL.canParse(text) && new URL(text).origin === text;
}

/** `same-site` does not count: another host of the same domain has another page. */
function isOwnSite(request: HttpRequest): boolean {
  const site = request.headers.get("sec-fetch-site");
  return site === null || site === "same-origin" || site === "none";
}

function hostOf(request: HttpRequest): string {
  return (request.headers.get("host") ?? new URL(request.url).host).toLowerCase();
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

// Proxies. Everybody can write X-Forwarded-For. So a peer names its client only if its own address is among the trusted proxies.
// By default nobody is trusted, and the caller is the peer itself.

const VARIABLE = "HOLDFAST_TRUSTED_PROXIES";
const PROXIES_MAX = 100;

export class TrustedProxies {
  readonly #ranges: readonly AddressRange[];

  constructor(ranges: readonly AddressRange[]) {
    this.#ranges = ranges;
  }

  get count(): number {
    return this.#ranges.length;
  }

  /** Each trusted proxy names the one before it, from the end of the header on. The first that is not trusted is the caller. */
  callerOf(request: HttpRequest, peer: string): string {
    if (this.count === 0 || !isAddressWithin(peer, this.#ranges)) return peer;
    const named = (request.headers.get("x-forwarded-for") ?? "").split(",").reverse();
    let caller = peer;
    for (const text of named) {
      const address = addressIn(text.trim());
      if (address === null) return caller;
      caller = address;
      if (!isAddressWithin(caller, this.#ranges)) return caller;
    }
    return caller;
  }
}

/** The option, else the variable. Throws if one of them is neither an address nor a network. */
export function readTrustedProxies(
  option: readonly string[] | undefined,
  env: Readonly<Record<string, string | undefined>>,
): TrustedProxies {
  const listed: unknown = option ?? (env[VARIABLE] ?? "").split(",").filter((text) => text !== "");
  const texts: readonly unknown[] = Array.isArray(listed) ? listed : [null];
  const ranges = texts.map((text) => (typeof text === "string" ? rangeOf(text.trim()) : null));
  const right = ranges.filter((range) => range !== null);
  if (right.length === ranges.length && right.length <= PROXIES_MAX)
    return new TrustedProxies(right);
  const message =
    `must be addresses or networks of proxies, at most ${PROXIES_MAX}, for example ` +
    (option === undefined ? '"10.0.0.0/8,127.0.0.1"' : '["10.0.0.0/8", "127.0.0.1"]');
  const field = option === undefined ? VARIABLE : "createHandler().trustedProxies";
  throw new ConfigurationError([{ field, message }]);
}

/** Null also for the network of all addresses: everybody could be anybody. */
function rangeOf(text: string): AddressRange | null {
  const range = readAddressRange(text);
  return range?.bits === 0 ? null : range;
}

/** Some proxies write the client's port, too. Null: it is no address. */
function addressIn(text: string): string | null {
  const [, bracketed] = /^\[([^\]]+)\](?::\d+)?$/.exec(text) ?? [];
  const [, dotted] = /^([\d.]+):\d+$/.exec(text) ?? [];
  const address = bracketed ?? dotted ?? text;
  return judgeAddress(address).what === "not an address" ? null : address;
}
