// Slows down callers that guess secrets. After a few wrong ones from a peer no secret of that peer is judged for a while, the
// right one neither, and each further wrong one doubles the wait. Other peers are not affected. Bounded in memory.

import { judgeAddress } from "../remote/dispatch/guard.js";
import type { HttpRequest } from "./request.js";

/** So many wrong ones cost nothing: people mistype, and a rotation leaves callers with the old one. */
const FREE_TRIES = 10;
const WAIT_MAX_MS = 60_000;
/** After so long one wrong try is forgotten. */
const HEAL_MS = 60_000;
const TRIES_MAX = 2 * FREE_TRIES;
const PEERS_MAX = 10_000;

type Bucket = { tries: number; healedAtMs: number; waitUntilMs: number };

export class BadTries {
  readonly #buckets = new Map<string, Bucket>();

  /** How many seconds the peer has to wait before a secret of it is judged; 0: none. */
  waitS(peer: string, nowMs: number): number {
    const { waitUntilMs = 0 } = this.#buckets.get(peer) ?? {};
    return Math.max(0, Math.ceil((waitUntilMs - nowMs) / 1_000));
  }

  /** Notes a wrong secret. Returns how many seconds the peer has to wait now, or 0. */
  note(peer: string, nowMs: number): number {
    const known = this.#buckets.get(peer) ?? { tries: 0, healedAtMs: nowMs, waitUntilMs: 0 };
    const healed = Math.floor(Math.max(0, nowMs - known.healedAtMs) / HEAL_MS);
    const tries = Math.min(TRIES_MAX, Math.max(0, known.tries - healed) + 1);
    const over = tries - FREE_TRIES;
    const waitMs = over <= 0 ? 0 : Math.min(WAIT_MAX_MS, 1_000 * 2 ** (over - 1));
    // A wait heals nothing, or whoever waits it out would start over.
    const healedAtMs = waitMs > 0 ? nowMs + waitMs : known.healedAtMs + healed * HEAL_MS;
    this.#buckets.delete(peer);
    this.#buckets.set(peer, { tries, healedAtMs, waitUntilMs: nowMs + waitMs });
    // The peer whose last wrong secret is the oldest makes room.
    if (this.#buckets.size > PEERS_MAX) {
      const [oldest] = this.#buckets.keys();
      if (oldest !== undefined) this.#buckets.delete(oldest);
    }
    return Math.ceil(waitMs / 1_000);
  }
}

/**
 * Who has to wait. Behind a proxy of the same network that is the client that the proxy names last in X-Forwarded-For, or one
 * guesser would hold up everybody; a peer with a public address names nobody. A client counts together with the peer that
 * names it: a peer that names others holds up none of their own calls, nor those that come by another proxy. Of IPv6 the
 * network counts: whoever has one address has all of it. Null: the server passes no address, and callers cannot be told apart.
 */
export function peerOf(request: HttpRequest, address: string): string | null {
  const { kind, what } = judgeAddress(address);
  if (what === "not an address") return null;
  const forwarded = kind === "private" ? request.headers.get("x-forwarded-for") : null;
  const client = forwarded?.split(",").at(-1)?.trim();
  const peer = networkOf(address);
  if (!client || judgeAddress(client).what === "not an address") return peer;
  return `${networkOf(client)} by ${peer}`;
}

/** An IPv4 address, or the first 64 bits of an IPv6 address. */
function networkOf(address: string): string {
  if (!address.includes(":")) return address;
  const embedded = /^::ffff:([\d.]+)$/i.exec(address)?.[1];
  if (embedded !== undefined) return embedded;
  const [head = "", tail] = (address.split("%", 1)[0] ?? "").toLowerCase().split("::");
  const before = head.split(":").filter((group) => group !== "");
  const after = (tail ?? "").split(":").filter((group) => group !== "");
  const zeros = Array.from({ length: Math.max(0, 8 - before.length - after.length) }, () => "0");
  const groups = tail === undefined ? before : [...before, ...zeros, ...after];
  return groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":");
}
