// Keeps locks in Redis, through the caller's client; each verb is one script in the server. The promise is weaker than that of
// lease rows: a fence is unique only while Redis loses no writes, and a failover or a restart without `appendfsync always` may
// lose some.

import { createHash } from "node:crypto";
import { ConfigurationError, OutcomeUnknownError } from "../shared/errors.js";
import type { LockProvider } from "./provider.js";
import * as scripts from "./redis-scripts.js";
import type { LockHistoryRecord, LockState } from "./rules/lock.js";

/** What is used of a client; an `ioredis` instance fits. */
export type RedisClient = {
  eval(script: string, keyCount: number, ...args: (string | number)[]): Promise<unknown>;
  evalsha(sha: string, keyCount: number, ...args: (string | number)[]): Promise<unknown>;
};

export type RedisLockOptions = {
  /** Begins the name of every key. Braces keep them on one node of a cluster. @default "{holdfast}" */
  readonly prefix?: string | undefined;
};

type Reply = readonly (string | number)[];

export function redisLocks(client: RedisClient, options: RedisLockOptions = {}): LockProvider {
  const { prefix = "{holdfast}" } = options;
  if (typeof client?.eval !== "function" || typeof client.evalsha !== "function") {
    const message = "must be a Redis client such as new Redis() of ioredis";
    throw new ConfigurationError([{ field: "redisLocks(client)", message }]);
  }
  if (typeof prefix !== "string" || !/\{[^{}]+\}/.test(prefix)) {
    const message = 'must have a part in braces, for example "{holdfast}"';
    throw new ConfigurationError([{ field: "redisLocks().prefix", message }]);
  }
  const ask = asker(client, prefix);
  return {
    name: "redis",
    capabilities: { fences: "volatile", queue: true, history: true },
    async acquire({ name, token, holder, leaseMs, waiting }) {
      const args = [name, token, holder, leaseMs, waiting?.priority ?? ""];
      const [answer, ...rest] = (await ask("acquire", scripts.ACQUIRE, args)) as Reply;
      const [first = "", second = "", takenFrom] = rest.map(String);
      return answer === "granted"
        ? {
            isGranted: true,
            fence: Number(first),
            leaseMs: Number(second),
            takenFrom: takenFrom || null,
          }
        : { isGranted: false, holder: first || null, until: second ? Number(second) : null };
    },
    async leaveQueue({ name, token }) {
      await ask("leaveQueue", scripts.LEAVE_QUEUE, [name, token]);
    },
    async extend({ name, fence, leaseMs }) {
      return (await ask("extend", scripts.EXTEND, [name, fence, leaseMs])) === 1;
    },
    async release({ name, fence }) {
      return (await ask("release", scripts.RELEASE, [name, fence])) === 1;
    },
    async revoke({ name, note }) {
      const args = [name, note === null ? 0 : 1, note ?? ""];
      const found = (await ask("revoke", scripts.REVOKE, args)) as Reply | null;
      return found ? { name, fence: Number(found[0]), holder: String(found[1]) } : null;
    },
    async list({ name, limit, after }) {
      const rows = (await ask("list", scripts.LIST, [limit, after ?? "", name ?? ""])) as Reply[];
      return rows.map(([found, fence, holder, acquiredAt, renewedAt, until, waiting]) => ({
        name: String(found),
        fence: Number(fence),
        holder: String(holder),
        acquiredAt: Number(acquiredAt),
        renewedAt: Number(renewedAt),
        until: Number(until),
        waiting: Number(waiting),
      }));
    },
    async history({ name, limit, before }) {
      const args = [limit, before ?? "", name ?? ""];
      const [over, held] = (await ask("history", scripts.HISTORY, args)) as [string[], Reply[]];
      return [...held.map(heldRecord), ...over.map(endedRecord)]
        .sort((one, other) => other.fence - one.fence)
        .slice(0, limit);
    },
    async stats() {
      const counts = (await ask("stats", scripts.STATS, [])) as number[];
      const [acquired = 0, released = 0, expired = 0, revoked = 0, waiting = 0] = counts;
      return { acquired, released, expired, revoked, waiting };
    },
    async tidy({ keepMs, limit }) {
      const [rows, removed, held] = (await ask("tidy", scripts.TIDY, [keepMs, limit])) as [
        Reply[],
        number,
        number,
      ];
      const expired = rows.map(([name, fence, holder]) => ({
        name: String(name),
        fence: Number(fence),
        holder: String(holder),
      }));
      return { expired, removed, held };
    },
  };
}

/** By the script's hash; the text itself is sent only where the server does not know it yet. */
function asker(client: RedisClient, prefix: string) {
  const hashes = new Map<string, string>();
  return async (verb: string, script: string, args: (string | number)[]): Promise<unknown> => {
    let hash = hashes.get(script);
    if (hash === undefined) {
      hash = createHash("sha1").update(script).digest("hex");
      hashes.set(script, hash);
    }
    try {
      return await client.evalsha(hash, 1, prefix, ...args).catch((error: unknown) => {
        if (!/^NOSCRIPT/.test(messageOf(error))) throw error;
        return client.eval(script, 1, prefix, ...args);
      });
    } catch (error) {
      // A ReplyError is a mistake of ours; any other error leaves the outcome unknown.
      if ((error as { name?: unknown }).name === "ReplyError") throw error;
      throw new OutcomeUnknownError(`${verb} a lock in Redis`, { cause: error });
    }
  };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function heldRecord([name, fence, holder, acquiredAt, until, isHeld]: Reply): LockHistoryRecord {
  return {
    name: String(name),
    fence: Number(fence),
    holder: String(holder),
    state: isHeld === 1 ? "acquired" : "expired",
    acquiredAt: Number(acquiredAt),
    until: Number(until),
    endedAt: isHeld === 1 ? null : Number(until),
    note: null,
  };
}

function endedRecord(json: string): LockHistoryRecord {
  const record = JSON.parse(json) as Record<string, string>;
  return {
    name: String(record.name),
    fence: Number(record.fence),
    holder: String(record.holder),
    state: record.state as LockState,
    acquiredAt: Number(record.acquiredAt),
    until: Number(record.untilMs),
    endedAt: Number(record.endedAt),
    note: record.note ?? null,
  };
}
