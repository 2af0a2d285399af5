// Keeps locks in etcd. A lock is free again when its lease in etcd has run out, so the cluster's clock decides, never one of
// ours. A fence is the revision at which its grant was stored; revisions grow with every write.

import { portableClock } from "../shared/adapters/portable-clock.js";
import { type Duration, durationMs } from "../shared/duration.js";
import { ConfigurationError, type Problem } from "../shared/errors.js";
import { requireName } from "../shared/names.js";
import { gather } from "../shared/problems.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import { base64, type EtcdEntry, EtcdGateway, type EtcdOperation } from "./etcd-gateway.js";
import {
  type LockAnswer,
  type LockFilter,
  type LockGrant,
  type LockHistoryFilter,
  type LockHistoryRecord,
  type LockProvider,
  type LockRecord,
  type LockRequest,
  type LockRevocation,
  type LockStats,
  type LockTidied,
  WAITER_VOID_MS,
} from "./rules/lock.js";

export type EtcdLockOptions = {
  /** Begins the name of every key. @default "holdfast" */
  readonly prefix?: string | undefined;
  /** A user of etcd, where it has users. */
  readonly user?: string | undefined;
  readonly password?: string | undefined;
  /** How long one server may take for one request. @default "5s" */
  readonly timeout?: Duration | undefined;
  /** Sends the requests, for example with a certificate of the client. @default globalThis.fetch */
  readonly fetch?: typeof globalThis.fetch | undefined;
};

/** Keeps locks in the etcd cluster that has these servers, for example `"http://127.0.0.1:2379"`. */
export function etcdLocks(
  endpoints: string | readonly string[],
  options: EtcdLockOptions = {},
): LockProvider {
  const problems: Problem[] = refuseUnknownMembers(
    options,
    ["prefix", "user", "password", "timeout", "fetch"],
    "etcdLocks()",
  );
  const { prefix = "holdfast", user, password, timeout = "5s", fetch = globalThis.fetch } = options;
  const servers = typeof endpoints === "string" ? [endpoints] : endpoints;
  if (!Array.isArray(servers) || servers.length === 0 || !servers.every(isEndpoint)) {
    const message =
      'must be the address of a server or a list of them, for example ["http://10.0.0.1:2379"], without a user or a path';
    problems.push({ field: "etcdLocks(endpoints)", message });
  }
  gather(problems, () => requireName(prefix, "etcdLocks().prefix"));
  const limits = { min: 100, max: 60_000 };
  const timeoutMs = gather(problems, () => durationMs(timeout, "etcdLocks().timeout", limits), 0);
  for (const [field, value] of Object.entries({ user, password }))
    if (value !== undefined && (typeof value !== "string" || value === ""))
      problems.push({ field: `etcdLocks().${field}`, message: "must be a text" });
  if ((user === undefined) !== (password === undefined))
    problems.push({ field: "etcdLocks().password", message: "and user must be given together" });
  if (typeof fetch !== "function")
    problems.push({ field: "etcdLocks().fetch", message: "must be a function like fetch" });
  if (problems.length > 0) throw new ConfigurationError(problems);
  const clean = servers.map((server) => server.replace(/\/$/, ""));
  const gateway = new EtcdGateway({ endpoints: clean, user, password, timeoutMs, fetch });
  return new EtcdLocks(gateway, prefix);
}

function isEndpoint(value: unknown): boolean {
  return typeof value === "string" && /^https?:\/\/[^\s/?#@]+\/?$/.test(value);
}

// ── the keys ─────────────────────────────────────────────────────────────────────────────────────
//
//   P/lock/NAME                  the current grant, also after its lease has run out
//   P/live/NAME                  the same, under a lease of etcd: the lock is held while this key exists
//   P/wait/NAME␀TOKEN            the priority of a waiting call, under a lease of 3 s; its place is the revision of its creation
//   P/over/FENCE                 a grant that is over, newest first
//   P/of/NAME␀FENCE              the same
//   P/ended/STATE/TIME/FENCE     the name of its lock: for counting, and for removing the oldest
//
// Every change of a lock writes P/lock/NAME under the condition that nobody has written it since it was read.

const ENDED = ["released", "expired", "revoked"] as const;
type Ended = (typeof ENDED)[number];

/** The value of P/lock/NAME and P/live/NAME. A new grant cannot know its fence: it is the revision of its own write. */
type Stored = {
  readonly fence?: number;
  readonly token: string;
  readonly holder: string;
  readonly execution: string | null;
  readonly acquiredAt: number;
  readonly renewedAt: number;
  readonly until: number;
};

type Grant = Stored & { readonly fence: number; readonly revision: number };

type Waiter = {
  readonly token: string;
  readonly priority: number;
  readonly place: number;
  readonly lease: string;
};

type State = {
  /** The revision of the whole store when it was read. */
  readonly readAt: number;
  /** The current grant; its lease may have run out. */
  readonly grant: Grant | null;
  /** The lease in etcd that the grant has, if it has not run out. */
  readonly lease: string | null;
  readonly waiters: readonly Waiter[];
};

/** At most 128 operations fit into one transaction; a grant has three keys. */
const REMOVED_AT_ONCE = 40;
/** Each round that is lost was won by another call, so this many have to come in between. */
const ROUNDS_MAX = 100;

class EtcdLocks implements LockProvider {
  readonly name = "etcd";
  readonly capabilities = { fences: "durable", queue: true, history: true } as const;
  readonly #etcd: EtcdGateway;
  readonly #prefix: string;

  constructor(etcd: EtcdGateway, prefix: string) {
    this.#etcd = etcd;
    this.#prefix = prefix;
  }

  acquire(request: LockRequest): Promise<LockAnswer> {
    const verb = "acquire a lock";
    const { name, token, holder, leaseMs, waiting, execution = null } = request;
    return repeated(async () => {
      const { grant, lease, waiters, readAt } = await this.#read(verb, name);
      if (grant && lease && grant.token === token) {
        const leftMs = Math.min(leaseMs, await this.#etcd.leaseLeftMs(verb, lease));
        return { isGranted: true, fence: grant.fence, leaseMs: leftMs, takenFrom: null };
      }
      const own = waiters.find((waiter) => waiter.token === token) ?? null;
      if (lease || waiters.some((waiter) => isBefore(waiter, own, waiting))) {
        if (waiting) await this.#queue({ name, token, own, priority: waiting.priority });
        const { holder = null, until = null } = (lease && grant) || {};
        return { isGranted: false, holder, until };
      }
      const now = portableClock.wallMs();
      const times = { acquiredAt: now, renewedAt: now, until: now + leaseMs };
      const stored = { token, holder, execution, ...times };
      const fence = await this.#store(verb, name, { grant, readAt, stored, leaseMs }, [
        remove(this.#key("wait", `${name}\0${token}`)),
        ...(grant ? this.#over(name, grant, "expired", Math.min(grant.until, now)) : []),
      ]);
      if (fence === null) return undefined;
      return { isGranted: true, fence, leaseMs, takenFrom: grant?.holder ?? null };
    });
  }

  async leaveQueue({ name, token }: { readonly name: string; readonly token: string }) {
    const key = this.#key("wait", `${name}\0${token}`);
    await this.#etcd.transaction("leave the queue of a lock", [remove(key)]);
  }

  extend(extension: LockGrant & { readonly leaseMs: number; readonly timeoutMs?: number }) {
    const { name, fence, leaseMs, timeoutMs } = extension;
    const verb = "extend a lock";
    return repeated(async () => {
      const { grant, lease, readAt } = await this.#read(verb, name, timeoutMs);
      if (grant?.fence !== fence) return false;
      const now = portableClock.wallMs();
      const { revision, ...rest } = grant;
      const stored = { ...rest, renewedAt: now, until: now + leaseMs };
      const change = { grant, readAt, stored, leaseMs, timeoutMs };
      if ((await this.#store(verb, name, change)) === null) return undefined;
      if (lease) this.#etcd.dropLease(lease);
      return true;
    });
  }

  async release({ name, fence }: LockGrant): Promise<boolean> {
    const verb = "release a lock";
    const isMeant = ({ grant }: State) => grant?.fence === fence;
    if (await this.#end(verb, { name, state: "released", isMeant })) return true;
    // It may have been released before, with the response lost.
    const [over] = await this.#ranges(verb, [get(this.#key("over", fromNewest(fence)))]);
    const record = over?.entries.map(toRecord)[0];
    return record?.name === name && record.state === "released";
  }

  async revoke({ name, note }: LockRevocation) {
    const isMeant = ({ lease }: State) => lease !== null;
    const end = { name, state: "revoked", isMeant, note } as const;
    const grant = await this.#end("revoke a lock", end);
    return grant && { name, fence: grant.fence, holder: grant.holder };
  }

  async list({ name, limit, after }: LockFilter): Promise<readonly LockRecord[]> {
    const all = this.#key("live", "");
    const held =
      name === undefined
        ? getAll(all, { from: after === undefined ? all : `${all}${after}\0`, limit })
        : get(`${all}${name}`);
    const queue = this.#key("wait", name === undefined ? "" : `${name}\0`);
    const [live, waiters] = await this.#ranges("list locks", [held, getAll(queue, KEYS_ONLY)]);
    const waiting = new Map<string, number>();
    for (const { key } of waiters?.entries ?? []) {
      const waitedFor = this.#nameOf("wait", key);
      waiting.set(waitedFor, (waiting.get(waitedFor) ?? 0) + 1);
    }
    return (live?.entries ?? []).map((entry) => {
      const { token, revision, ...grant } = toGrant(entry);
      const found = this.#nameOf("live", entry.key);
      return { ...grant, name: found, waiting: waiting.get(found) ?? 0 };
    });
  }

  async history({ name, limit, before }: LockHistoryFilter): Promise<readonly LockHistoryRecord[]> {
    const all = name === undefined ? this.#key("over", "") : this.#key("of", `${name}\0`);
    const from = before === undefined ? all : `${all}${fromNewest(before)}\0`;
    const [over, locks, live] = await this.#ranges("list the history of locks", [
      getAll(all, { from, limit }),
      name === undefined ? getAll(this.#key("lock", "")) : get(this.#key("lock", name)),
      getAll(this.#key("live", ""), KEYS_ONLY),
    ]);
    const held = new Set(live?.entries.map(({ key }) => this.#nameOf("live", key)));
    const current = (locks?.entries ?? []).map((entry): LockHistoryRecord => {
      const { token, renewedAt, revision, ...grant } = toGrant(entry);
      const found = this.#nameOf("lock", entry.key);
      const isHeld = held.has(found);
      const endedAt = isHeld ? null : grant.until;
      return { ...grant, name: found, state: isHeld ? "acquired" : "expired", endedAt, note: null };
    });
    return [
      ...current.filter(({ fence }) => fence < (before ?? Infinity)),
      ...(over?.entries ?? []).map(toRecord),
    ]
      .sort((one, other) => other.fence - one.fence)
      .slice(0, limit);
  }

  async stats(): Promise<LockStats> {
    const counted = ["lock/", "live/", "wait/", ...ENDED.map((state) => `ended/${state}/`)];
    const counts = await this.#ranges(
      "count locks",
      counted.map((folder) => getAll(`${this.#prefix}/${folder}`, { count_only: true })),
    );
    const [current = 0, acquired = 0, waiting = 0, released = 0, expired = 0, revoked = 0] =
      counts.map(({ count }) => count);
    return { acquired, released, expired: expired + current - acquired, revoked, waiting };
  }

  async tidy({ keepMs, limit }: { readonly keepMs: number; readonly limit: number }) {
    const verb = "tidy locks";
    const past = timeText(portableClock.wallMs() - keepMs);
    const [locks, live, ...ended] = await this.#ranges(verb, [
      getAll(this.#key("lock", ""), KEYS_ONLY),
      getAll(this.#key("live", ""), KEYS_ONLY),
      ...ENDED.map((state) => {
        const all = this.#key("ended", `${state}/`);
        return getAll(all, { to: `${all}${past}`, limit });
      }),
    ]);
    const held = new Set(live?.entries.map(({ key }) => this.#nameOf("live", key)));
    const names = (locks?.entries ?? []).map(({ key }) => this.#nameOf("lock", key));
    const expired: LockTidied["expired"][number][] = [];
    for (const name of names.filter((each) => !held.has(each)).slice(0, limit)) {
      const isMeant = ({ grant, lease }: State) => grant !== null && lease === null;
      const grant = await this.#end(verb, { name, state: "expired", isMeant });
      if (grant) expired.push({ name, fence: grant.fence, holder: grant.holder });
    }
    const old = ended.flatMap(({ entries }) => entries).slice(0, limit);
    for (let at = 0; at < old.length; at += REMOVED_AT_ONCE) {
      const keys = old.slice(at, at + REMOVED_AT_ONCE).flatMap(({ key, value: name }) => {
        const fence = key.slice(key.lastIndexOf("/") + 1);
        return [key, this.#key("over", fence), this.#key("of", `${name}\0${fence}`)];
      });
      await this.#etcd.transaction(verb, keys.map(remove));
    }
    return { expired, removed: old.length, held: held.size };
  }

  /** Takes or keeps a place among the waiting calls. */
  async #queue(call: {
    readonly name: string;
    readonly token: string;
    readonly own: Waiter | null;
    readonly priority: number;
  }): Promise<void> {
    const verb = "wait for a lock";
    const { name, token, own, priority } = call;
    if (own && (await this.#etcd.renewLease(verb, own.lease))) return;
    const lease = await this.#etcd.grantLease(verb, WAITER_VOID_MS);
    const key = this.#key("wait", `${name}\0${token}`);
    await this.#etcd.transaction(verb, [put(key, String(priority), lease)]);
  }

  /** Stores a grant under a new lease. Returns the revision, or null if the lock has changed since it was read. */
  async #store(
    verb: string,
    name: string,
    change: {
      readonly grant: Grant | null;
      readonly readAt: number;
      readonly stored: Stored;
      readonly leaseMs: number;
      readonly timeoutMs?: number | undefined;
    },
    more: readonly EtcdOperation[] = [],
  ): Promise<number | null> {
    const { grant, readAt, stored, leaseMs, timeoutMs } = change;
    const key = this.#key("lock", name);
    const value = JSON.stringify(stored);
    const lease = await this.#etcd.grantLease(verb, leaseMs, timeoutMs);
    const operations = [put(key, value), put(this.#key("live", name), value, lease), ...more];
    // A grant that began and ended since the read left no key behind, but it is in the history.
    const from = this.#key("of", `${name}\0`);
    const empty = { from, to: from + fromNewest(readAt) };
    const condition = { key, revision: grant?.revision ?? 0, empty };
    const done = await this.#etcd.transaction(verb, operations, { condition, timeoutMs });
    if (!done) this.#etcd.dropLease(lease);
    return done?.revision ?? null;
  }

  /** Ends the current grant if it is the one that is meant, and returns it. */
  #end(
    verb: string,
    end: {
      readonly name: string;
      readonly state: Ended;
      readonly isMeant: (state: State) => boolean;
      readonly note?: string | null;
    },
  ): Promise<Grant | null> {
    const { name, state, isMeant, note = null } = end;
    return repeated(async () => {
      const found = await this.#read(verb, name);
      const { grant, lease } = found;
      if (!grant || !isMeant(found)) return null;
      const key = this.#key("lock", name);
      const endedAt = state === "expired" ? grant.until : portableClock.wallMs();
      const operations = [
        remove(key),
        remove(this.#key("live", name)),
        ...this.#over(name, grant, state, endedAt, note),
      ];
      const condition = { key, revision: grant.revision };
      if (!(await this.#etcd.transaction(verb, operations, { condition }))) return undefined;
      if (lease) this.#etcd.dropLease(lease);
      return grant;
    });
  }

  /** Writes the history of a grant that is over. */
  #over(name: string, grant: Grant, state: Ended, endedAt: number, note: string | null = null) {
    const { fence, holder, execution, acquiredAt, until } = grant;
    const record = { name, fence, holder, execution, state, acquiredAt, until, endedAt, note };
    const value = JSON.stringify(record satisfies LockHistoryRecord);
    const place = fromNewest(fence);
    return [
      put(this.#key("over", place), value),
      put(this.#key("of", `${name}\0${place}`), value),
      put(this.#key("ended", `${state}/${timeText(endedAt)}/${place}`), name),
    ];
  }

  async #read(verb: string, name: string, timeoutMs?: number): Promise<State> {
    const queue = this.#key("wait", `${name}\0`);
    const ranges = [get(this.#key("lock", name)), get(this.#key("live", name)), getAll(queue)];
    const read = await this.#etcd.transaction(verb, ranges, { timeoutMs });
    const [lock, live, waiters] = read?.found ?? [];
    return {
      readAt: read?.revision ?? 0,
      grant: lock?.entries.map(toGrant)[0] ?? null,
      lease: live?.entries[0]?.lease ?? null,
      waiters: (waiters?.entries ?? []).map(({ key, value, createdAt, lease }) => ({
        token: key.slice(queue.length),
        priority: Number(value),
        place: createdAt,
        lease,
      })),
    };
  }

  /** Reads several ranges as they were at one moment. */
  async #ranges(verb: string, ranges: readonly EtcdOperation[]) {
    return (await this.#etcd.transaction(verb, ranges))?.found ?? [];
  }

  #key(folder: string, rest: string): string {
    return `${this.#prefix}/${folder}/${rest}`;
  }

  #nameOf(folder: string, key: string): string {
    const [name = ""] = key.slice(this.#key(folder, "").length).split("\0");
    return name;
  }
}

/** Repeats a try that found the lock changed since it had read it. */
async function repeated<T>(attempt: () => Promise<T | undefined>): Promise<T> {
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    const result = await attempt();
    if (result !== undefined) return result;
  }
  throw new Error(`A lock in etcd was changed by others ${ROUNDS_MAX} times in a row.`);
}

/** Whether a waiter goes first: it is more urgent, or as urgent and came earlier. Each goes before a call that does not wait. */
function isBefore(waiter: Waiter, own: Waiter | null, waiting: LockRequest["waiting"]): boolean {
  if (waiter.token === own?.token) return false;
  if (!waiting || waiter.priority > waiting.priority) return true;
  return waiter.priority === waiting.priority && (own === null || waiter.place < own.place);
}

function toGrant({ value, revision }: EtcdEntry): Grant {
  const stored = JSON.parse(value) as Stored;
  return { ...stored, fence: stored.fence ?? revision, revision };
}

function toRecord({ value }: EtcdEntry): LockHistoryRecord {
  return JSON.parse(value) as LockHistoryRecord;
}

const DIGITS = 16;

/** A fence as text whose order is newest first: etcd reads a page from the beginning of a range without reading the rest. */
function fromNewest(fence: number): string {
  return String(Number.MAX_SAFE_INTEGER - fence).padStart(DIGITS, "0");
}

function timeText(ms: number): string {
  return String(Math.max(0, ms)).padStart(DIGITS, "0");
}

// ── the operations of a transaction ──────────────────────────────────────────────────────────────

const KEYS_ONLY = { keys_only: true };

function get(key: string): EtcdOperation {
  return { request_range: { key: base64(key) } };
}

/** Reads the keys that begin with `prefix`, or a part of them. */
function getAll(
  prefix: string,
  {
    from = prefix,
    to,
    ...more
  }: { from?: string; to?: string } & Readonly<Record<string, unknown>> = {},
): EtcdOperation {
  const last = prefix.length - 1;
  const end = to ?? prefix.slice(0, last) + String.fromCharCode(prefix.charCodeAt(last) + 1);
  return { request_range: { key: base64(from), range_end: base64(end), ...more } };
}

function put(key: string, value: string, lease = "0"): EtcdOperation {
  return { request_put: { key: base64(key), value: base64(value), lease } };
}

function remove(key: string): EtcdOperation {
  return { request_delete_range: { key: base64(key) } };
}
