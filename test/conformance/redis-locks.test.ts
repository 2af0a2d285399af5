// Locks in Redis: the cases of every provider on a real server, whose clock a test cannot move.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Holdfast } from "../../src/holdfast.js";
import { redisLocks } from "../../src/locks/redis.js";
import { OutcomeUnknownError } from "../../src/shared/errors.js";
import { lockProviderCases } from "../../src/testing/lock-cases.js";
import { hasRedis, type RedisServer, startRedis } from "../support/redis-server.js";

describe.skipIf(!hasRedis())("locks in Redis", () => {
  let server: RedisServer;
  let prefixes = 0;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.stop());

  const fresh = () => {
    prefixes += 1;
    return `{test-${prefixes}}`;
  };

  describe.concurrent("cases", () => {
    const names = lockProviderCases({ provider: () => Promise.reject() }).map(({ name }) => name);
    for (const [at, name] of names.entries()) {
      test(name, async () => {
        const prefix = fresh();
        const provider = async () => redisLocks(server.connect(), { prefix });
        await lockProviderCases({ provider, another: provider })[at]?.run();
      });
    }
  });

  test("holdfast.lock uses the given provider and opens no database for it", async () => {
    const options = {
      database: "postgres://nobody@127.0.0.1:1/nowhere",
      locks: redisLocks(server.connect(), { prefix: fresh() }),
    };
    const one = new Holdfast(options);
    const other = new Holdfast(options);
    const answer = await one.lock("import", { lease: "5s" }, async ({ fence }) => {
      expect(fence).toBe(1);
      expect(await other.lock("import", {}, () => "never")).toMatchObject({
        acquired: false,
        reason: "locked",
        holder: one.instanceId,
      });
      return "done";
    });
    expect(answer).toEqual({ acquired: true, value: "done", fence: 1 });
    expect(await other.locks.stats()).toMatchObject({ acquired: 0, released: 1 });
    await Promise.all([one.stop(), other.stop()]);
  });

  test("a script that the server forgot is sent again", async () => {
    const client = server.connect();
    const provider = redisLocks(client, { prefix: fresh() });
    await provider.stats();
    await client.script("FLUSH");
    expect(await provider.stats()).toMatchObject({ acquired: 0 });
  });

  test("a server that went away leaves the outcome unknown, not failed", async () => {
    const client = server.connect();
    const provider = redisLocks(client, { prefix: fresh() });
    await provider.stats();
    client.disconnect();
    await expect(provider.stats()).rejects.toBeInstanceOf(OutcomeUnknownError);
  });
});
