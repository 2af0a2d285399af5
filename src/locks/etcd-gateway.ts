// Sends requests to the JSON gateway of etcd: logs in, tries the next endpoint if one is away, and limits the time of each
// request. It repeats nothing that may have changed something under a condition: the caller knows how to look.

import { portableClock } from "../shared/adapters/portable-clock.js";
import {
  ConfigurationError,
  OutcomeUnknownError,
  StoreUnavailableError,
} from "../shared/errors.js";
import { isNotReceived } from "../shared/failure.js";

export type EtcdGatewayParams = {
  readonly endpoints: readonly string[];
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly timeoutMs: number;
  readonly fetch: typeof globalThis.fetch;
};

/** A key as it is stored. `revision` is that of its last write. */
export type EtcdEntry = {
  readonly key: string;
  readonly value: string;
  readonly revision: number;
  readonly createdAt: number;
  readonly lease: string;
};

/** One operation of a transaction, as the gateway expects it. */
export type EtcdOperation = Readonly<Record<string, object>>;

/** The transaction is done only if the last write of the key has this revision (0: there is no such key), and no key is in `empty`. */
export type EtcdCondition = {
  readonly key: string;
  readonly revision: number;
  readonly empty?: { readonly from: string; readonly to: string } | undefined;
};

/** The result of each operation. `count` is the number of keys, also of those beyond a limit. */
export type EtcdTransaction = {
  readonly revision: number;
  readonly found: readonly { readonly entries: readonly EtcdEntry[]; readonly count: number }[];
};

type Call = { readonly isConditional?: boolean; readonly timeoutMs?: number | undefined };
type Json = Readonly<Record<string, unknown>>;

const LEASE_NOT_FOUND = 5;
const PERMISSION_DENIED = 7;
const AUTH_NOT_ENABLED = 9;
/** etcd forgets a token after five idle minutes and at a restart, and refuses it when users or roles have changed. */
const TOKEN_IS_OLD = /invalid auth token|revision of auth store is old/;
const LOGIN_IS_WRONG = /authentication failed|user name (is empty|not found)/;

/** The server understood the request and refused it. */
class Refusal extends Error {
  constructor(
    verb: string,
    readonly code: number,
    readonly reason: string,
  ) {
    super(`etcd refused to ${verb}: ${reason}`);
  }
}

export class EtcdGateway {
  readonly #params: EtcdGatewayParams;
  #at = 0;
  #token: string | null = null;

  constructor(params: EtcdGatewayParams) {
    this.#params = params;
  }

  /** Null: the condition was not met, or the lease of a key has run out. */
  async transaction(
    verb: string,
    operations: readonly EtcdOperation[],
    { condition, timeoutMs }: { condition?: EtcdCondition; timeoutMs?: number | undefined } = {},
  ): Promise<EtcdTransaction | null> {
    const compare = condition && [
      { key: base64(condition.key), target: "MOD", mod_revision: String(condition.revision) },
      ...[condition.empty ?? []].flat().map(({ from, to }) => {
        const range = { key: base64(from), range_end: base64(to) };
        return { ...range, target: "CREATE", create_revision: "0" };
      }),
    ];
    const call = { isConditional: condition !== undefined, timeoutMs };
    try {
      const result = await this.#call(verb, "kv/txn", { compare, success: operations }, call);
      if (!result.succeeded) return null;
      return {
        revision: Number((result.header as Json).revision),
        found: ((result.responses ?? []) as Json[]).map(({ response_range }) =>
          toFound(response_range),
        ),
      };
    } catch (error) {
      if (error instanceof Refusal && error.code === LEASE_NOT_FOUND) return null;
      throw error;
    }
  }

  /** Returns the id of a lease that lasts at least this long: etcd counts seconds, and has a minimum. */
  async grantLease(verb: string, ms: number, timeoutMs?: number): Promise<string> {
    const TTL = Math.max(1, Math.ceil(ms / 1_000));
    return String((await this.#call(verb, "lease/grant", { TTL }, { timeoutMs })).ID);
  }

  /** Starts a lease again. False: it has run out. */
  async renewLease(verb: string, lease: string): Promise<boolean> {
    const { result } = await this.#call(verb, "lease/keepalive", { ID: lease });
    return Number((result as Json | undefined)?.TTL ?? 0) > 0;
  }

  /** How much of a lease is left, in whole seconds that have not begun. */
  async leaseLeftMs(verb: string, lease: string): Promise<number> {
    const { TTL } = await this.#call(verb, "lease/timetolive", { ID: lease });
    return Math.max(0, Number(TTL ?? 0)) * 1_000;
  }

  /** Ends a lease that has no keys any more. Nobody waits for this: it would end by itself. */
  dropLease(lease: string): void {
    this.#call("end a lease", "lease/revoke", { ID: lease }).catch(() => undefined);
  }

  async #call(verb: string, path: string, body: object, call: Call = {}): Promise<Json> {
    for (let tries = 1; ; tries += 1) {
      const token = await this.#loggedIn(call);
      try {
        return await this.#sent(`${verb} in etcd`, path, body, { ...call, token });
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        if (tries > 1 || !TOKEN_IS_OLD.test(error.reason)) throw explained(error);
        if (this.#token === token) this.#token = null;
      }
    }
  }

  /** Returns the token for requests; empty without a user, or if the server has no users. */
  async #loggedIn(call: Call): Promise<string> {
    const { user: name, password } = this.#params;
    if (name === undefined) return "";
    if (this.#token !== null) return this.#token;
    const limit = { timeoutMs: call.timeoutMs, token: "" };
    try {
      const body = { name, password };
      const { token } = await this.#sent("log in to etcd", "auth/authenticate", body, limit);
      this.#token = String(token);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (error.code !== AUTH_NOT_ENABLED) throw explained(error);
      this.#token = "";
    }
    return this.#token;
  }

  /** Tries each endpoint once, beginning with the one that responded last. */
  async #sent(
    verb: string,
    path: string,
    body: object,
    { isConditional = false, timeoutMs, token }: Call & { readonly token: string },
  ): Promise<Json> {
    const { endpoints } = this.#params;
    let isUnknown = false;
    let cause: unknown;
    for (let tries = 0; tries < endpoints.length; tries += 1) {
      const at = this.#at;
      try {
        return await this.#request(verb, `${endpoints[at]}/v3/${path}`, { body, token, timeoutMs });
      } catch (error) {
        if (error instanceof Refusal) throw error;
        cause = error;
        isUnknown ||= !isNotReceived(error);
        // Calls at the same time find the same endpoint away: they move on once.
        if (this.#at === at) this.#at = (at + 1) % endpoints.length;
        if (isUnknown && isConditional) break;
      }
    }
    if (isUnknown) throw new OutcomeUnknownError(verb, { cause });
    throw new StoreUnavailableError({ tried: verb, url: endpoints.join(","), cause });
  }

  async #request(
    verb: string,
    url: string,
    request: {
      readonly body: object;
      readonly token: string;
      readonly timeoutMs: number | undefined;
    },
  ): Promise<Json> {
    const { fetch: send } = this.#params;
    const { body, token, timeoutMs = Number.POSITIVE_INFINITY } = request;
    const ending = new AbortController();
    const limitMs = Math.min(timeoutMs, this.#params.timeoutMs);
    const timer = portableClock.timer(limitMs, () => {
      ending.abort(new Error(`no response within ${limitMs} ms`));
    });
    try {
      const response = await send(url, {
        method: "POST",
        headers: { "content-type": "application/json", ...(token && { authorization: token }) },
        body: JSON.stringify(body),
        redirect: "error",
        signal: ending.signal,
      });
      const text = await response.text();
      if (response.ok) return JSON.parse(text) as Json;
      // 500 and above: this server cannot serve anybody now; another one may.
      if (response.status >= 500)
        throw new Error(`etcd responded with ${response.status}: ${text}`);
      const { code, message } = refusalOf(text);
      throw new Refusal(verb, code, message ?? `status ${response.status} of ${url}`);
    } finally {
      timer.cancel();
    }
  }
}

/** An old proxy, or another server altogether, responds without JSON. */
function refusalOf(text: string): { readonly code: number; readonly message?: string } {
  try {
    return JSON.parse(text) as { code: number; message: string };
  } catch {
    return { code: -1 };
  }
}

/** Names the option that is wrong, if it is one. */
function explained(refusal: Refusal): Error {
  if (LOGIN_IS_WRONG.test(refusal.reason))
    return wrong("user", `and its password must be those of a user of etcd: ${refusal.reason}`);
  if (refusal.code === PERMISSION_DENIED)
    return wrong("user", `must have a role that may read and write all keys of the prefix`);
  if (refusal.code === -1)
    return wrong("endpoints", `must be servers of etcd 3.4 or later: ${refusal.reason}`);
  return refusal;
}

function wrong(field: string, message: string): ConfigurationError {
  const place = field === "endpoints" ? "etcdLocks(endpoints)" : `etcdLocks().${field}`;
  return new ConfigurationError([{ field: place, message }]);
}

type Range = { readonly kvs?: readonly Record<string, string>[]; readonly count?: string };

function toFound(range: unknown): EtcdTransaction["found"][number] {
  const { kvs = [], count = 0 } = (range ?? {}) as Range;
  const entries = kvs.map(({ key, value, mod_revision, create_revision, lease }) => ({
    key: textOf(key),
    value: textOf(value),
    revision: Number(mod_revision),
    createdAt: Number(create_revision),
    lease: lease ?? "0",
  }));
  return { entries, count: Number(count) };
}

function textOf(encoded = ""): string {
  return Buffer.from(encoded, "base64").toString();
}

export function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}
