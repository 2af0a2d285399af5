// Locks in etcd: the cases of every provider on a real server, whose clock a test cannot move.

import { createServer as createHttpServer } from "node:http";
import { createServer, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Holdfast } from "../../src/holdfast.js";
import { type EtcdLockOptions, etcdLocks } from "../../src/locks/etcd.js";
import { base64 } from "../../src/locks/etcd-gateway.js";
import type { LockRequest } from "../../src/locks/rules/lock.js";
import {
  ConfigurationError,
  OutcomeUnknownError,
  StoreUnavailableError,
} from "../../src/shared/errors.js";
import { lockProviderCases } from "../../src/testing/lock-cases.js";
import { type EtcdServer, freeUrl, hasEtcd, startEtcd } from "../support/etcd-server.js";
import { until } from "../support/until.js";

describe.skipIf(!hasEtcd())("locks in etcd", () => {
  let server: EtcdServer;
  let prefixes = 0;
  beforeAll(async () => {
    server = await startEtcd();
  });
  afterAll(() => server.stop());

  const fresh = () => {
    prefixes += 1;
    return `test-${prefixes}`;
  };
  const locks = (options: EtcdLockOptions = {}) =>
    etcdLocks(server.url, { prefix: fresh(), ...options });

  describe.concurrent("cases", () => {
    const names = lockProviderCases({ provider: () => Promise.reject() }).map(({ name }) => name);
    for (const [at, name] of names.entries()) {
      test(name, async () => {
        const prefix = fresh();
        const provider = async () => locks({ prefix });
        // etcd looks for leases that have run out every half second.
        const cases = lockProviderCases({ provider, another: provider, lateMs: 1_500 });
        await cases[at]?.run();
      });
    }
  });

  const request = (changes: Partial<LockRequest> = {}): LockRequest => ({
    ...{ name: "import", token: "call-1", holder: "host:1:a", leaseMs: 60_000, waiting: null },
    ...changes,
  });

  test("holdfast.lock uses the given provider and opens no database for it", async () => {
    const options = {
      database: "postgres://nobody@127.0.0.1:1/nowhere",
      locks: locks({ prefix: fresh() }),
    };
    const one = new Holdfast(options);
    const other = new Holdfast(options);
    const answer = await one.lock("import", { lease: "5s" }, async ({ fence }) => {
      expect(await other.lock("import", {}, () => "never")).toMatchObject({
        acquired: false,
        reason: "locked",
        holder: one.instanceId,
      });
      return fence;
    });
    expect(answer).toMatchObject({ acquired: true, value: expect.any(Number) });
    expect(await other.locks.stats()).toMatchObject({ acquired: 0, released: 1 });
    await Promise.all([one.stop(), other.stop()]);
  });

  test("a fence is the revision of its grant, and a lease that has been extended keeps it", async () => {
    const prefix = fresh();
    const provider = locks({ prefix });
    const granted = await provider.acquire(request());
    const key = Buffer.from(`${prefix}/lock/import`).toString("base64");
    const { kvs } = (await server.call("kv/range", { key })) as { kvs: { mod_revision: string }[] };
    const fence = Number(kvs[0]?.mod_revision);
    expect(granted).toMatchObject({ isGranted: true, fence });
    expect(await provider.extend({ name: "import", fence, leaseMs: 60_000 })).toBe(true);
    expect(await provider.list({ limit: 1 })).toMatchObject([{ fence }]);
    expect(await provider.release({ name: "import", fence })).toBe(true);
    expect(await provider.history({ limit: 1 })).toMatchObject([{ fence, state: "released" }]);
  });

  test("neither a grant that is over nor a waiter that gave up leaves a lease in etcd", async () => {
    const own = await startEtcd();
    try {
      const provider = etcdLocks(own.url);
      const granted = await provider.acquire(request());
      const fence = granted.isGranted ? granted.fence : 0;
      await provider.extend({ name: "import", fence, leaseMs: 60_000 });
      await provider.release({ name: "import", fence });
      const leases = async () => ((await own.call("lease/leases", {})).leases ?? []) as unknown[];
      await until("the leases have ended", async () => (await leases()).length === 0);
    } finally {
      await own.stop();
    }
  });

  test("a grant and a release whose answers were lost are the same when they are repeated", async () => {
    const prefix = fresh();
    let isLossy = false;
    const lossy: typeof fetch = async (url, init) => {
      const response = await fetch(url, init);
      const isWrite = String(init?.body).includes("request_put");
      if (!isLossy || !isWrite) return response;
      isLossy = false;
      throw new Error("the connection was cut");
    };
    const provider = locks({ prefix, fetch: lossy });
    isLossy = true;
    await expect(provider.acquire(request())).rejects.toBeInstanceOf(OutcomeUnknownError);
    const granted = await provider.acquire(request());
    expect(granted).toMatchObject({ isGranted: true, takenFrom: null });
    const fence = granted.isGranted ? granted.fence : 0;
    isLossy = true;
    const release = () => provider.release({ name: "import", fence });
    await expect(release()).rejects.toBeInstanceOf(OutcomeUnknownError);
    expect(await release()).toBe(true);
    expect(await provider.stats()).toMatchObject({ acquired: 0, released: 1 });
  });

  test("a lock that another call had and released since it was read is read again", async () => {
    const prefix = fresh();
    const other = locks({ prefix });
    let isFirst = true;
    const late: typeof fetch = async (url, init) => {
      if (isFirst && String(url).endsWith("lease/grant")) {
        isFirst = false;
        const granted = await other.acquire(request({ token: "call-2" }));
        if (granted.isGranted) await other.release({ name: "import", fence: granted.fence });
      }
      return fetch(url, init);
    };
    await locks({ prefix, fetch: late }).acquire(request());
    const [own, before] = await other.history({ limit: 2 });
    expect([own?.state, before?.state]).toEqual(["acquired", "released"]);
    expect(own?.acquiredAt).toBeGreaterThanOrEqual(before?.endedAt ?? Number.NaN);
  });

  test("a server that is away is passed over for the next one, and then not asked again", async () => {
    const away = await freeUrl();
    const asked: string[] = [];
    const watched: typeof fetch = (url, init) => {
      asked.push(new URL(String(url)).origin);
      return fetch(url, init);
    };
    const options = { prefix: fresh(), fetch: watched };
    const provider = etcdLocks([away, `${server.url}/`], options);
    expect(await provider.acquire(request())).toMatchObject({ isGranted: true });
    expect(asked.filter((origin) => origin === away)).toHaveLength(1);
  });

  test("a server that does not answer is left after the time limit", async () => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => sockets.push(socket)).listen(0, "127.0.0.1");
    await new Promise((resolve) => silent.once("listening", resolve));
    const { port } = silent.address() as { readonly port: number };
    const endpoints = [`http://127.0.0.1:${port}`, server.url];
    const provider = etcdLocks(endpoints, { prefix: fresh(), timeout: "3s" });
    expect(await provider.stats()).toMatchObject({ acquired: 0 });
    for (const socket of sockets) socket.destroy();
    silent.close();
  });

  test("with no server in reach nothing was done; with an answer that is lost the outcome is unknown", async () => {
    const url = await freeUrl();
    const error = await etcdLocks(url)
      .acquire(request())
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(StoreUnavailableError);
    expect((error as Error).message).toContain(`${url} could not be reached`);
    // The server gets the request, and its answer never arrives.
    const losing: typeof fetch = async (place, init) => {
      await fetch(place, { ...init, signal: null });
      return new Promise((_, reject) => {
        const lost = () => reject(init?.signal?.reason);
        if (init?.signal?.aborted) lost();
        init?.signal?.addEventListener("abort", lost);
      });
    };
    const provider = etcdLocks(server.url, { prefix: fresh(), timeout: "100ms", fetch: losing });
    await expect(provider.stats()).rejects.toBeInstanceOf(OutcomeUnknownError);
  });

  test("a user logs in, and again when etcd has forgotten the token; a wrong one is named", async () => {
    const own = await startEtcd();
    try {
      const prefix = "shop";
      const range = { key: base64("shop/"), range_end: base64("shop0") };
      await own.call("auth/user/add", { name: "root", password: "root-secret" });
      await own.call("auth/user/grant", { user: "root", role: "root" });
      await own.call("auth/role/add", { name: "locker" });
      const perm = { permType: "READWRITE", ...range };
      await own.call("auth/role/grant", { name: "locker", perm });
      for (const name of ["app", "guest"])
        await own.call("auth/user/add", { name, password: "a-secret" });
      await own.call("auth/user/grant", { user: "app", role: "locker" });
      const login = { prefix, user: "app", password: "a-secret" };
      // Without users in the server the login is not needed.
      const provider = etcdLocks(own.url, login);
      expect(await provider.stats()).toMatchObject({ acquired: 0 });
      await own.call("auth/enable", {});

      const granted = await etcdLocks(own.url, login).acquire(request());
      expect(granted).toMatchObject({ isGranted: true });
      const { token } = await own.call("auth/authenticate", {
        name: "root",
        password: "root-secret",
      });
      const other = etcdLocks(own.url, login);
      expect(await other.list({ limit: 1 })).toMatchObject([{ name: "import" }]);
      // A change of the users makes every token old.
      const headers = { authorization: String(token) };
      const body = JSON.stringify({ name: "late", password: "a-secret" });
      await fetch(`${own.url}/v3/auth/user/add`, { method: "POST", headers, body });
      const fence = granted.isGranted ? granted.fence : 0;
      expect(await other.release({ name: "import", fence })).toBe(true);

      const wrong = (options: EtcdLockOptions) =>
        etcdLocks(own.url, { prefix, ...options }).stats();
      for (const options of [{}, { user: "app", password: "wrong" }, { ...login, user: "guest" }]) {
        const error = await wrong(options).catch((thrown: unknown) => thrown);
        expect(error).toBeInstanceOf(ConfigurationError);
        expect((error as Error).message).toContain("etcdLocks().user");
        expect((error as Error).message).not.toContain("a-secret");
      }
    } finally {
      await own.stop();
    }
  });

  test("a server that is not etcd is named", async () => {
    const web = createHttpServer((_, response) => response.writeHead(404).end("Not here."));
    web.listen(0, "127.0.0.1");
    await new Promise((resolve) => web.once("listening", resolve));
    const { port } = web.address() as { readonly port: number };
    await expect(etcdLocks(`http://127.0.0.1:${port}`).stats()).rejects.toThrow(
      /etcdLocks\(endpoints\).*etcd 3\.4 or later/,
    );
    web.closeAllConnections();
    web.close();
  });
});

test("problems of the options are named, all at once, without a secret", () => {
  const wrong = { prefix: "", timeout: "5 minutes", user: "app", pasword: "a-secret" } as never;
  const attempt = () => etcdLocks("10.0.0.1:2379", wrong);
  for (const field of ["(endpoints)", "().prefix", "().timeout", "().password", '"password"'])
    expect(attempt).toThrow(field);
  expect(() => etcdLocks([])).toThrow("etcdLocks(endpoints)");
  expect(() => etcdLocks("http://app:a-secret@10.0.0.1:2379")).toThrow(/^(?!.*a-secret)/s);
  expect(() => etcdLocks(undefined as never)).toThrow("etcdLocks(endpoints)");
});
