// Slows down and reports callers that guess secrets, for the access check.
//
// After a few wrong secrets from a peer, no secret of that peer is judged for a while, not even the right one, and each further
// wrong one doubles the wait. Other peers are not affected. Memory is bounded. Refusals and sign-ins are emitted as events, which
// are logged and counted, and refusals also go to the audit trail. A flood of refusals fills neither: peers that guess have to
// wait, and the trail takes a bounded number a minute.

import type { Holdfast } from "../holdfast.js";
import { serverInternals } from "../instance/server-internals.js";
import { type Actor, auditEntry } from "../operations/rules/audit.js";
import { judgeAddress } from "../remote/dispatch/guard.js";
import type { Scope } from "./wire/schemas.js";

/** The first wrong ones cost nothing: people mistype, and a rotation leaves callers with the old secret. */
const FREE_TRIES = 10;
const WAIT_MAX_MS = 60_000;
/** One wrong try is forgotten after each such time. */
const HEAL_MS = 60_000;
const TRIES_MAX = 2 * FREE_TRIES;
const PEERS_MAX = 10_000;

type Bucket = { tries: number; healedAtMs: number; waitUntilMs: number };

export class GuessThrottle {
  readonly #buckets = new Map<string, Bucket>();

  /** How many seconds the peer has to wait before its next secret is judged; 0: none. */
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
    // The wait itself heals nothing, or a peer that sits it out would start over.
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

/** The name of a peer whose address the server does not pass. */
export const ADDRESS_UNKNOWN = "unknown";

/**
 * The key under which wrong secrets are counted. IPv6 counts by network: the owner of one address has the whole network. Texts
 * that are no addresses share one key, because callers may have written them. Null: the server passes no address, so callers
 * cannot be distinguished.
 */
export function peerOf(address: string): string | null {
  if (address === ADDRESS_UNKNOWN) return null;
  return judgeAddress(address).what === "not an address" ? "no address" : networkOf(address);
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

// Reports

/** Refusals that a process writes to the audit trail; the others are logged and counted. */
const AUDITED_PER_MINUTE = 60;
const MINUTE_MS = 60_000;

/** The refused call. */
export type Refused = "secret" | "callback token";

export class AccessReport {
  readonly #holdfast: Holdfast;
  readonly #nowMs: () => number;
  #minute = 0;
  #audited = 0;

  constructor(holdfast: Holdfast, nowMs: () => number) {
    this.#holdfast = holdfast;
    this.#nowMs = nowMs;
  }

  /** Emits the event only: the session's own audit entry records the sign-in. */
  signedIn(actor: Actor, scopes: ReadonlySet<Scope>): void {
    const { address, requestId, who } = actor;
    this.#emit("access.signed_in", { address, requestId, who, scopes: [...scopes] });
  }

  /** `waitS`: how long the peer has to wait from now on. */
  async refused(actor: Actor, what: Refused, waitS: number): Promise<void> {
    const { address, requestId } = actor;
    this.#emit("access.refused", { address, requestId, what, waitS });
    if (!this.#mayAudit()) return;
    const wait = waitS === 0 ? "" : `; the next one is judged after ${waitS} s`;
    const change = `wrong ${what}${wait}`;
    const entry = auditEntry(actor, { verb: "refuse", noun: "access", name: null, change });
    try {
      await (await this.#holdfast[serverInternals].store("addAudit")).audit.add(entry);
    } catch {
      // The refusal stands even if the database cannot be reached. It has been logged.
    }
  }

  get #emit() {
    return this.#holdfast[serverInternals].emit;
  }

  #mayAudit(): boolean {
    const minute = Math.floor(this.#nowMs() / MINUTE_MS);
    if (minute !== this.#minute) this.#audited = 0;
    this.#minute = minute;
    this.#audited += 1;
    return this.#audited <= AUDITED_PER_MINUTE;
  }
}
