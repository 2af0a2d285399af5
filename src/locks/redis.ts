// Keeps locks in Redis, through the caller's client; each verb is one script in the server. The promise is weaker than that of
// lease rows: a fence is unique only while Redis loses no writes, and a failover or a restart without `appendfsync always` may
// lose some.

import { createHash } from "node:crypto";
import { ConfigurationError, OutcomeUnknownError } from "../shared/errors.js";
import {
  type LockHistoryRecord,
  type LockProvider,
  type LockState,
  WAITER_VOID_MS,
} from "./rules/lock.js";

/** The part of a client that is used; an `ioredis` instance fits. */
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
  const call = scriptCaller(client, prefix);
  return {
    name: "redis",
    capabilities: { fences: "volatile", queue: true, history: true },
    async acquire({ name, token, holder, leaseMs, waiting, execution }) {
      const args = [name, token, holder, leaseMs, waiting?.priority ?? "", execution ?? ""];
      const [result, ...rest] = (await call("acquire", ACQUIRE, args)) as Reply;
      const [first = "", second = "", takenFrom] = rest.map(String);
      return result === "granted"
        ? {
            isGranted: true,
            fence: Number(first),
            leaseMs: Number(second),
            takenFrom: takenFrom || null,
          }
        : { isGranted: false, holder: first || null, until: second ? Number(second) : null };
    },
    async leaveQueue({ name, token }) {
      await call("leaveQueue", LEAVE_QUEUE, [name, token]);
    },
    async extend({ name, fence, leaseMs }) {
      return (await call("extend", EXTEND, [name, fence, leaseMs])) === 1;
    },
    async release({ name, fence }) {
      return (await call("release", RELEASE, [name, fence])) === 1;
    },
    async revoke({ name, note }) {
      const args = [name, note === null ? 0 : 1, note ?? ""];
      const found = (await call("revoke", REVOKE, args)) as Reply | null;
      return found ? { name, fence: Number(found[0]), holder: String(found[1]) } : null;
    },
    async list({ name, limit, after }) {
      const rows = (await call("list", LIST, [limit, after ?? "", name ?? ""])) as Reply[];
      return rows.map(
        ([found, fence, holder, acquiredAt, renewedAt, until, waiting, execution]) => ({
          name: String(found),
          fence: Number(fence),
          holder: String(holder),
          acquiredAt: Number(acquiredAt),
          renewedAt: Number(renewedAt),
          until: Number(until),
          waiting: Number(waiting),
          execution: execution ? String(execution) : null,
        }),
      );
    },
    async history({ name, limit, before }) {
      const args = [limit, before ?? "", name ?? ""];
      const [over, held] = (await call("history", HISTORY, args)) as [string[], Reply[]];
      return [...held.map(heldRecord), ...over.map(endedRecord)]
        .sort((one, other) => other.fence - one.fence)
        .slice(0, limit);
    },
    async stats() {
      const counts = (await call("stats", STATS, [])) as number[];
      const [acquired = 0, released = 0, expired = 0, revoked = 0, waiting = 0] = counts;
      return { acquired, released, expired, revoked, waiting };
    },
    async tidy({ keepMs, limit }) {
      const [rows, removed, held] = (await call("tidy", TIDY, [keepMs, limit])) as [
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

/** Calls the script by its hash; sends the text only if the server does not know it yet. */
function scriptCaller(client: RedisClient, prefix: string) {
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
      // A ReplyError is a bug in the script; any other error leaves the outcome unknown.
      if ((error as { name?: unknown }).name === "ReplyError") throw error;
      throw new OutcomeUnknownError(`${verb} a lock in Redis`, { cause: error });
    }
  };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function heldRecord([
  name,
  fence,
  holder,
  acquiredAt,
  until,
  isHeld,
  execution,
]: Reply): LockHistoryRecord {
  return {
    name: String(name),
    fence: Number(fence),
    holder: String(holder),
    state: isHeld === 1 ? "acquired" : "expired",
    acquiredAt: Number(acquiredAt),
    until: Number(until),
    endedAt: isHeld === 1 ? null : Number(until),
    note: null,
    execution: execution ? String(execution) : null,
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
    execution: record.execution ?? null,
  };
}

// ── the scripts ──────────────────────────────────────────────────────────────────────────────────
// They run atomically in the server. Their one key is the prefix; its braces keep all keys on one node of a cluster.
// Time is the server's.
//
//   P:fence, P:no       counters: fences, places in queues
//   P:lock:NAME         the current grant          P:held         names by the end of their lease
//   P:queue:NAME        tokens by place            P:seen:NAME    when each of them was last seen
//   P:grants            grants that are over, as JSON by fence
//   P:fences[:NAME]     their fences in order      P:ended        the same by the time of their end
//   P:counts            how many there are in each state

const PRELUDE = `
local P = KEYS[1]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function text(number) return string.format('%.0f', number) end
local function current(name)
  local f = redis.call('HMGET', P .. ':lock:' .. name, 'fence', 'token', 'holder', 'acquiredAt', 'until', 'renewedAt', 'execution')
  if not f[1] then return nil end
  return { fence = f[1], token = f[2], holder = f[3], acquiredAt = tonumber(f[4]), untilMs = tonumber(f[5]),
    renewedAt = tonumber(f[6]), execution = f[7] or nil }
end
local function finish(name, grant, state, endedAt, note)
  redis.call('DEL', P .. ':lock:' .. name)
  redis.call('ZREM', P .. ':held', name)
  local record = { name = name, fence = grant.fence, holder = grant.holder, state = state,
    acquiredAt = text(grant.acquiredAt), untilMs = text(grant.untilMs), endedAt = text(endedAt), note = note, execution = grant.execution }
  redis.call('HSET', P .. ':grants', grant.fence, cjson.encode(record))
  redis.call('ZADD', P .. ':fences', grant.fence, grant.fence)
  redis.call('ZADD', P .. ':fences:' .. name, grant.fence, grant.fence)
  redis.call('ZADD', P .. ':ended', endedAt, grant.fence)
  redis.call('HINCRBY', P .. ':counts', state, 1)
end
local function leave(name, token)
  redis.call('ZREM', P .. ':queue:' .. name, token)
  redis.call('HDEL', P .. ':seen:' .. name, token)
end
local function isLive(name, token)
  return now - tonumber(redis.call('HGET', P .. ':seen:' .. name, token) or 0) < ${WAITER_VOID_MS}
end`;

/** The first live waiter; expired ones before it are removed. */
const FIRST_IN_QUEUE = `
local function first(name)
  while true do
    local token = redis.call('ZRANGE', P .. ':queue:' .. name, 0, 0)[1]
    if not token or isLive(name, token) then return token end
    leave(name, token)
  end
end`;

// A larger priority is a smaller score; among equal scores the smaller number came first.
const ACQUIRE = `${PRELUDE} ${FIRST_IN_QUEUE}
local name, token, holder, leaseMs, priority, execution = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6]
local grant = current(name)
local isHeld = grant and grant.untilMs > now
if isHeld and grant.token == token then return { 'granted', grant.fence, text(grant.untilMs - now), '' } end
if priority ~= '' then
  if not redis.call('ZSCORE', P .. ':queue:' .. name, token) then
    local no = redis.call('INCR', P .. ':no')
    redis.call('ZADD', P .. ':queue:' .. name, (100 - tonumber(priority)) * 17592186044416 + no, token)
  end
  redis.call('HSET', P .. ':seen:' .. name, token, text(now))
end
if isHeld then return { 'refused', grant.holder, text(grant.untilMs) } end
local ahead = first(name)
if ahead and ahead ~= token then return { 'refused', '', '' } end
if grant then finish(name, grant, 'expired', grant.untilMs, nil) end
leave(name, token)
local fence = text(redis.call('INCR', P .. ':fence'))
redis.call('HSET', P .. ':lock:' .. name, 'fence', fence, 'token', token, 'holder', holder,
  'acquiredAt', text(now), 'renewedAt', text(now), 'until', text(now + leaseMs))
if execution ~= '' then redis.call('HSET', P .. ':lock:' .. name, 'execution', execution) end
redis.call('ZADD', P .. ':held', now + leaseMs, name)
return { 'granted', fence, text(leaseMs), grant and grant.holder or '' }`;

const LEAVE_QUEUE = `${PRELUDE}
leave(ARGV[1], ARGV[2])
return 1`;

const EXTEND = `${PRELUDE}
local name, fence, leaseMs = ARGV[1], ARGV[2], tonumber(ARGV[3])
local grant = current(name)
if not grant or grant.fence ~= fence then return 0 end
redis.call('HSET', P .. ':lock:' .. name, 'until', text(now + leaseMs), 'renewedAt', text(now))
redis.call('ZADD', P .. ':held', now + leaseMs, name)
return 1`;

// A grant that is no longer current may have been released before, with its response lost.
const RELEASE = `${PRELUDE}
local name, fence = ARGV[1], ARGV[2]
local grant = current(name)
if grant and grant.fence == fence then
  finish(name, grant, 'released', now, nil)
  return 1
end
local over = redis.call('HGET', P .. ':grants', fence)
if not over then return 0 end
local record = cjson.decode(over)
return record.state == 'released' and record.name == name and 1 or 0`;

const REVOKE = `${PRELUDE}
local name = ARGV[1]
local grant = current(name)
if not grant or grant.untilMs <= now then return false end
local note = nil
if ARGV[2] == '1' then note = ARGV[3] end
finish(name, grant, 'revoked', now, note)
return { grant.fence, grant.holder }`;

const LIVE_WAITERS = `
local function waiters(name)
  local count = 0
  for _, token in ipairs(redis.call('ZRANGE', P .. ':queue:' .. name, 0, -1)) do
    if isLive(name, token) then count = count + 1 end
  end
  return count
end`;

const LIST = `${PRELUDE} ${LIVE_WAITERS}
local limit, after, only = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local names = redis.call('ZRANGEBYSCORE', P .. ':held', '(' .. text(now), '+inf')
table.sort(names)
local found = {}
for _, name in ipairs(names) do
  if #found < limit and name > after and (only == '' or only == name) then
    local grant = current(name)
    found[#found + 1] = { name, grant.fence, grant.holder, text(grant.acquiredAt), text(grant.renewedAt),
      text(grant.untilMs), waiters(name), grant.execution or '' }
  end
end
return found`;

const HISTORY = `${PRELUDE}
local limit, before, only = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local below = before == '' and '+inf' or '(' .. before
local key = only == '' and P .. ':fences' or P .. ':fences:' .. only
local over = {}
for _, fence in ipairs(redis.call('ZREVRANGEBYSCORE', key, below, '-inf', 'LIMIT', 0, limit)) do
  over[#over + 1] = redis.call('HGET', P .. ':grants', fence)
end
local held = {}
local names = only == '' and redis.call('ZRANGE', P .. ':held', 0, -1) or { only }
for _, name in ipairs(names) do
  local grant = current(name)
  if grant and (before == '' or tonumber(grant.fence) < tonumber(before)) then
    held[#held + 1] = { name, grant.fence, grant.holder, text(grant.acquiredAt), text(grant.untilMs),
      grant.untilMs > now and 1 or 0, grant.execution or '' }
  end
end
return { over, held }`;

const STATS = `${PRELUDE} ${LIVE_WAITERS}
local counts = redis.call('HMGET', P .. ':counts', 'released', 'expired', 'revoked')
local held = redis.call('ZCOUNT', P .. ':held', '(' .. text(now), '+inf')
local overdue = redis.call('ZCOUNT', P .. ':held', '-inf', text(now))
local waiting = 0
for _, name in ipairs(redis.call('ZRANGE', P .. ':held', 0, -1)) do waiting = waiting + waiters(name) end
return { held, tonumber(counts[1] or 0), tonumber(counts[2] or 0) + overdue, tonumber(counts[3] or 0), waiting }`;

const TIDY = `${PRELUDE}
local keepMs, limit = tonumber(ARGV[1]), tonumber(ARGV[2])
local expired = {}
for _, name in ipairs(redis.call('ZRANGEBYSCORE', P .. ':held', '-inf', text(now), 'LIMIT', 0, limit)) do
  local grant = current(name)
  finish(name, grant, 'expired', grant.untilMs, nil)
  expired[#expired + 1] = { name, grant.fence, grant.holder }
end
local removed = 0
for _, fence in ipairs(redis.call('ZRANGEBYSCORE', P .. ':ended', '-inf', '(' .. text(now - keepMs), 'LIMIT', 0, limit)) do
  local record = cjson.decode(redis.call('HGET', P .. ':grants', fence))
  redis.call('HDEL', P .. ':grants', fence)
  redis.call('ZREM', P .. ':fences', fence)
  redis.call('ZREM', P .. ':fences:' .. record.name, fence)
  redis.call('ZREM', P .. ':ended', fence)
  redis.call('HINCRBY', P .. ':counts', record.state, -1)
  removed = removed + 1
end
return { expired, removed, redis.call('ZCARD', P .. ':held') }`;
