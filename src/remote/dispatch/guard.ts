// Sends one HTTP request safely, for dispatches, alerts and the job `http`. It resolves the name once, checks every address,
// and connects only to a checked address, so a name that resolves differently a moment later gains nothing. It follows no
// redirect, so headers reach one origin only. The size of the response and the total time are limited. The result
// distinguishes requests that certainly were not delivered from those that may have been.

import { prop, textProp } from "../../shared/failure.js";
import type { Clock, Network, PinnedResponse } from "../../shared/ports.js";

export const RESPONSE_BYTES_MAX = 1024 * 1024;
/** How many addresses of a name are tried. */
const ADDRESSES_TRIED_MAX = 4;

export type GuardedRequest = {
  readonly url: string;
  readonly method: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** For the lookup, the connection and the response together. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  /** Loopback, private and link-local networks may be reached. @default false */
  readonly allowPrivateNetwork?: boolean;
};

export type GuardedResponse =
  | ({ readonly kind: "answered" } & PinnedResponse)
  /** The request is not allowed; nothing was sent, and a retry cannot help. */
  | { readonly kind: "refused"; readonly reason: string }
  /** Certainly nothing was sent. */
  | { readonly kind: "not_delivered"; readonly reason: string }
  /** A connection existed: the request may have been received. */
  | { readonly kind: "unknown"; readonly reason: string };

export type GuardServices = { readonly network: Network; readonly clock: Clock };

export async function guardedFetch(
  request: GuardedRequest,
  { network, clock }: GuardServices,
): Promise<GuardedResponse> {
  const refusal = refusalOf(request);
  if (refusal !== null) return { kind: "refused", reason: refusal };
  const end = new AbortController();
  const timer = clock.timer(request.timeoutMs, () => end.abort(new NoResponse(request.timeoutMs)));
  const onAbort = () => end.abort(request.signal?.reason);
  if (request.signal?.aborted) onAbort();
  request.signal?.addEventListener("abort", onAbort, { once: true });
  try {
    return await sendJudged(request, network, end.signal);
  } finally {
    timer.cancel();
    request.signal?.removeEventListener("abort", onAbort);
  }
}

/** Why this request is refused, or null. Resolves no name. */
export function refusalOf({
  url: text,
  method,
  headers = {},
  allowPrivateNetwork = false,
}: Pick<GuardedRequest, "url" | "method" | "headers" | "allowPrivateNetwork">): string | null {
  if (!URL.canParse(text)) return "the URL cannot be read";
  const url = new URL(text);
  if (url.protocol !== "http:" && url.protocol !== "https:")
    return `${url.protocol} is neither http: nor https:`;
  if (url.username !== "" || url.password !== "") return "the URL contains a user or a password";
  const port = portOf(url);
  if (OTHER_PROTOCOLS.has(port)) return `port ${port} belongs to another protocol than HTTP`;
  if (!/^[A-Z]{1,20}$/.test(method)) return "the method is none of HTTP's";
  const wrong = Object.entries(headers).find(([name, value]) => !isHeader(name, value));
  if (wrong) return `the header ${JSON.stringify(wrong[0].slice(0, 64))} is not allowed`;
  const literal = literalAddress(url);
  return literal === null ? null : refusedAddress([literal], allowPrivateNetwork);
}

async function sendJudged(
  request: GuardedRequest,
  network: Network,
  signal: AbortSignal,
): Promise<GuardedResponse> {
  const url = new URL(request.url);
  let addresses: readonly string[];
  try {
    addresses = await addressesOf(url, network, signal);
  } catch (error) {
    return { kind: "not_delivered", reason: reasonOf(error) };
  }
  if (addresses.length === 0)
    return { kind: "not_delivered", reason: `${url.hostname} has no address` };
  const refused = refusedAddress(addresses, request.allowPrivateNetwork ?? false);
  if (refused !== null)
    return { kind: "refused", reason: `${url.hostname} leads astray: ${refused}` };
  let reason = "";
  for (const address of addresses.slice(0, ADDRESSES_TRIED_MAX)) {
    const response = await sendTo(address, { request, url, network, signal });
    if (response.kind !== "not_delivered" || signal.aborted) return response;
    reason ||= response.reason;
  }
  return { kind: "not_delivered", reason };
}

async function sendTo(
  address: string,
  params: {
    readonly request: GuardedRequest;
    readonly url: URL;
    readonly network: Network;
    readonly signal: AbortSignal;
  },
): Promise<GuardedResponse> {
  const { request, url, network, signal } = params;
  const { body = "" } = request;
  let isConnected = false;
  const sending = network.send({
    address,
    port: portOf(url),
    tlsName: url.protocol === "https:" ? unbracketed(url) : null,
    method: request.method,
    path: `${url.pathname}${url.search}`,
    // No content coding is accepted: a small body could unpack to a huge one.
    headers: { "accept-encoding": "identity", ...lowered(request.headers), host: url.host },
    body: typeof body === "string" ? new TextEncoder().encode(body) : body,
    bytesMax: RESPONSE_BYTES_MAX,
    signal,
    onConnected: () => {
      isConnected = true;
    },
  });
  try {
    return { kind: "answered", ...(await unlessAborted(sending, signal)) };
  } catch (error) {
    return { kind: isConnected ? "unknown" : "not_delivered", reason: reasonOf(error) };
  }
}

async function addressesOf(
  url: URL,
  network: Network,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const literal = literalAddress(url);
  return literal === null
    ? unlessAborted(network.resolve(url.hostname), signal)
    : Promise.resolve([literal]);
}

/** One forbidden address is enough to refuse: an honest name has none. */
function refusedAddress(addresses: readonly string[], mayBePrivate: boolean): string | null {
  for (const address of addresses) {
    const { kind, what } = judgeAddress(address);
    if (kind === "forbidden") return `${address} is ${what}, where no request may go`;
    if (kind === "private" && !mayBePrivate)
      return `${address} is ${what}; allowPrivateNetwork: true would allow it`;
  }
  return null;
}

/** The address, if the URL has one in place of a name; `URL` normalises every notation. */
function literalAddress(url: URL): string | null {
  const isAddress = url.hostname.startsWith("[") || /^[\d.]+$/.test(url.hostname);
  return isAddress ? unbracketed(url) : null;
}

function unbracketed({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
}

function portOf(url: URL): number {
  if (url.port !== "") return Number(url.port);
  return url.protocol === "https:" ? 443 : 80;
}

/** Headers that frame the request are set here only. */
const OWN_HEADERS = ["host", "content-length", "transfer-encoding", "connection", "upgrade", "te"];

function isHeader(name: string, value: string): boolean {
  const isToken = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$/.test(name);
  return isToken && !OWN_HEADERS.includes(name.toLowerCase()) && /^[\t\x20-\x7e]*$/.test(value);
}

function lowered(headers: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
  );
}

/** Does not wait for code that ignores the signal. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}

/** Internal: it leaves this file only as text. */
class NoResponse {
  readonly message: string;
  constructor(timeoutMs: number) {
    this.message = `no response within ${timeoutMs} ms`;
  }
}

/** Codes before messages: a message may repeat what was sent. */
function reasonOf(error: unknown): string {
  const code = textProp(error, "code") ?? textProp(prop(error, "cause"), "code");
  if (error instanceof NoResponse) return error.message;
  return code ?? textProp(error, "name") ?? "the connection failed";
}

/**
 * Ports of other protocols: those that browsers refuse, and those of databases, queues and remote control, which could
 * misread a request as commands.
 */
const OTHER_PROTOCOLS: ReadonlySet<number> = new Set([
  ...[0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95],
  ...[101, 102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 138, 139, 143, 161],
  ...[179, 389, 427, 445, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563],
  ...[587, 601, 636, 989, 990, 993, 995, 1433, 1521, 1719, 1720, 1723, 2049, 2375, 2376, 3306],
  ...[3389, 3659, 4045, 4190, 5060, 5061, 5432, 5672, 5900, 6000, 6379, 6566, 6665, 6666, 6667],
  ...[6668, 6669, 6679, 6697, 9042, 9092, 10080, 11211, 27017, 27018, 27019],
]);

// ── which addresses a request may go to: judged by network; an unreadable address is refused ──

/** The kind of an address outside the public internet. */
export type AddressKind = "public" | "private" | "forbidden";

export type Judgement = { readonly kind: AddressKind; readonly what: string };

const PUBLIC: Judgement = { kind: "public", what: "public" };

type Range = readonly [prefix: string, kind: AddressKind, what: string];

// `private` networks are allowed if the target says so. `forbidden` ones never are: no worker runs at a cloud's metadata
// service, at "this host" (which connects to loopback), or at a group address.
const IPV4_RANGES: readonly Range[] = [
  ["169.254.169.254/32", "forbidden", "cloud metadata"],
  ["169.254.170.2/32", "forbidden", "cloud metadata"],
  ["169.254.170.23/32", "forbidden", "cloud metadata"],
  ["100.100.100.200/32", "forbidden", "cloud metadata"],
  ["168.63.129.16/32", "forbidden", "cloud metadata"],
  ["192.0.0.192/32", "forbidden", "cloud metadata"],
  ["0.0.0.0/8", "forbidden", "unspecified"],
  ["10.0.0.0/8", "private", "private"],
  ["100.64.0.0/10", "private", "carrier-grade NAT"],
  ["127.0.0.0/8", "private", "loopback"],
  ["169.254.0.0/16", "private", "link-local"],
  ["172.16.0.0/12", "private", "private"],
  ["192.168.0.0/16", "private", "private"],
  ["198.18.0.0/15", "private", "benchmarking"],
  ["192.0.0.0/24", "forbidden", "reserved"],
  ["192.0.2.0/24", "forbidden", "documentation"],
  ["192.88.99.0/24", "forbidden", "reserved"],
  ["198.51.100.0/24", "forbidden", "documentation"],
  ["203.0.113.0/24", "forbidden", "documentation"],
  ["224.0.0.0/4", "forbidden", "multicast"],
  ["240.0.0.0/4", "forbidden", "reserved"],
];

const IPV6_RANGES: readonly Range[] = [
  ["fd00:ec2::254/128", "forbidden", "cloud metadata"],
  ["fd00:ec2::23/128", "forbidden", "cloud metadata"],
  ["fd20:ce::254/128", "forbidden", "cloud metadata"],
  ["fd00:c1::a9fe:a9fe/128", "forbidden", "cloud metadata"],
  ["::/128", "forbidden", "unspecified"],
  ["::1/128", "private", "loopback"],
  ["fc00::/7", "private", "unique local"],
  ["fe80::/10", "private", "link-local"],
  ["2001::/23", "forbidden", "reserved"],
  ["2001:db8::/32", "forbidden", "documentation"],
  ["2002::/16", "forbidden", "6to4"],
  ["3fff::/20", "forbidden", "documentation"],
  ["2000::/3", "public", "public"],
  ["ff00::/8", "forbidden", "multicast"],
];

/** Networks whose last 32 bits are an IPv4 address that the traffic goes to. */
const EMBEDDING = ["::ffff:0:0/96", "64:ff9b::/96"] as const;

/** Classifies one address; ignores the `%zone` of a link-local one. */
export function judgeAddress(text: string): Judgement {
  const address = bytesOf(text.split("%", 1)[0] ?? "");
  if (!address) return { kind: "forbidden", what: "not an address" };
  if (address.length === 4) return judge(address, V4) ?? PUBLIC;
  const isEmbedding = V6_EMBEDDING.some((range) => isWithin(address, range));
  if (isEmbedding) return judge(address.slice(12), V4) ?? PUBLIC;
  // Everything outside the ranges assigned to hosts is refused, compatible addresses included.
  return judge(address, V6) ?? { kind: "forbidden", what: "reserved" };
}

/** A network: addresses whose first bits are those of this one. */
export type AddressRange = { readonly network: readonly number[]; readonly bits: number };

type ReadRange = AddressRange & { readonly judgement: Judgement };

/** An address ("10.0.0.3") or a network ("10.0.0.0/8") that somebody wrote; null: it is neither. */
export function readAddressRange(text: string): AddressRange | null {
  const [, address = "", bits] = /^([^/]+?)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const network = bytesOf(address);
  if (network === null || Number(bits ?? 0) > network.length * 8) return null;
  return { network, bits: bits === undefined ? network.length * 8 : Number(bits) };
}

/** Whether an address is one of these; an IPv4 address may be written as IPv6 (`::ffff:10.0.0.3`). */
export function isAddressWithin(text: string, ranges: readonly AddressRange[]): boolean {
  const bytes = bytesOf(text.split("%", 1)[0] ?? "");
  if (bytes === null) return false;
  const address = bytes.length === 16 && isWithin(bytes, V6_MAPPED) ? bytes.slice(12) : bytes;
  return ranges.some(
    (range) => range.network.length === address.length && isWithin(address, range),
  );
}

const readRange = ([prefix, kind, what]: Range): ReadRange => {
  const [network = "", bits] = prefix.split("/");
  return { network: bytesOf(network) ?? [], bits: Number(bits), judgement: { kind, what } };
};
const V4 = IPV4_RANGES.map(readRange);
const V6 = IPV6_RANGES.map(readRange);
const V6_EMBEDDING = EMBEDDING.map((prefix) => readRange([prefix, "public", ""]));
const [V6_MAPPED] = V6_EMBEDDING as [ReadRange, ReadRange];

/** The first range decides: the narrow ones come first. */
function judge(address: readonly number[], ranges: readonly ReadRange[]): Judgement | undefined {
  return ranges.find((range) => isWithin(address, range))?.judgement;
}

function isWithin(address: readonly number[], { network, bits }: AddressRange): boolean {
  return address.every((byte, at) => {
    const shown = Math.min(8, Math.max(0, bits - at * 8));
    const mask = (0xff << (8 - shown)) & 0xff;
    return (byte & mask) === ((network[at] ?? 0) & mask);
  });
}

/** 4 or 16 bytes, or null. Strict: dotted decimal alone, as `URL` has turned every other form into it. */
function bytesOf(text: string): readonly number[] | null {
  if (text.length > 45) return null;
  return text.includes(":") ? ipv6Bytes(text) : ipv4Bytes(text);
}

function ipv4Bytes(text: string): readonly number[] | null {
  const parts = text.split(".");
  const isRight = parts.length === 4 && parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part));
  const bytes = parts.map(Number);
  return isRight && bytes.every((byte) => byte <= 255) ? bytes : null;
}

function ipv6Bytes(text: string): readonly number[] | null {
  const halves = text.split("::");
  if (halves.length > 2) return null;
  const [head, tail] = [groupBytes(halves[0] ?? ""), groupBytes(halves[1] ?? "")];
  if (!head || !tail) return null;
  const missing = 16 - head.length - tail.length;
  if (halves.length === 1) return missing === 0 ? head : null;
  return missing >= 2 ? [...head, ...new Array<number>(missing).fill(0), ...tail] : null;
}

function groupBytes(text: string): readonly number[] | null {
  const bytes: number[] = [];
  if (text === "") return bytes;
  const groups = text.split(":");
  for (const [at, group] of groups.entries()) {
    const isLast = at === groups.length - 1;
    const embedded = isLast && group.includes(".") ? ipv4Bytes(group) : null;
    if (embedded) bytes.push(...embedded);
    else if (/^[0-9a-f]{1,4}$/i.test(group)) {
      const value = Number.parseInt(group, 16);
      bytes.push(value >> 8, value & 0xff);
    } else return null;
  }
  return bytes.length <= 16 ? bytes : null;
}
