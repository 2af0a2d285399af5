// Named locks: the cases of every provider, on lease rows, with the database's time in the test's hand.

import { expect } from "vitest";
import { lockProviderCases } from "../../src/testing/lock-cases.js";
import type { SceneTest } from "./scene.js";
import type { StoreSuiteOptions } from "./store-suite.js";

const DAY_MS = 86_400_000;

export function lockSuite(test: SceneTest, { isShared }: StoreSuiteOptions): void {
  const names = lockProviderCases({ provider: () => Promise.reject() }).map(({ name }) => name);
  for (const [at, name] of names.entries()) {
    test(name, async ({ scene }) => {
      const cases = lockProviderCases({
        provider: async () => scene.store.locks,
        another: async () => (isShared ? await scene.open() : scene.store).locks,
        pass: async (ms) => scene.advance(ms),
      });
      await cases[at]?.run();
    });
  }

  test("a name that was idle for days is forgotten, and its next fence is larger all the same", async ({
    scene,
  }) => {
    const provider = scene.store.locks;
    const ask = async () => {
      const answer = await provider.acquire({
        name: "import",
        token: crypto.randomUUID(),
        holder: "host:1:a",
        leaseMs: 1_000,
        waiting: null,
      });
      if (!answer.isGranted) throw new Error("The lock was refused.");
      return answer.fence;
    };
    const first = await ask();
    await provider.release({ name: "import", fence: first });
    scene.advance(40 * DAY_MS);
    expect((await provider.tidy({ keepMs: 30 * DAY_MS, limit: 100 })).removed).toBeGreaterThan(0);
    expect(await provider.history({ limit: 10 })).toEqual([]);
    expect(await ask()).toBeGreaterThan(first);
  });

  test("waiters that fell silent are removed", async ({ scene }) => {
    const provider = scene.store.locks;
    const request = { name: "import", holder: "host:1:a", leaseMs: 60_000 };
    await provider.acquire({ ...request, token: crypto.randomUUID(), waiting: null });
    const waiter = { ...request, token: crypto.randomUUID(), waiting: { priority: 0 } };
    await provider.acquire(waiter);
    expect((await provider.tidy({ keepMs: DAY_MS, limit: 100 })).removed).toBe(0);
    scene.advance(3_000);
    expect((await provider.tidy({ keepMs: DAY_MS, limit: 100 })).removed).toBe(1);
  });
}
