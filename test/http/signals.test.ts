// Signals over HTTP and by the client: what they reach, what is repeated, what is refused.

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createClient, RequestRefusedError } from "../../src/client/index.js";
import { until } from "../support/until.js";
import { DATABASES, type House, newHouse, SECRETS } from "./house.js";

describe.each(DATABASES)("signals on %s", (database) => {
  let house: House;
  beforeEach(async () => {
    house = await newHouse(database);
  });
  afterEach(() => house.end());

  const send = (name: string, body: unknown, secret: string = SECRETS.enqueue) =>
    house.ask("POST", `/api/signals/${name}`, { secret, body });

  test("a run that waits is given the value that the scope enqueue sends", async () => {
    const { holdfast } = house;
    holdfast.job("approval", {
      run: (_: unknown, ctx) => ctx.waitFor("approved", { key: "order-7" }),
    });
    const { id } = await holdfast.enqueue("approval", null);
    await holdfast.tick({ limit: 5 });
    expect(await holdfast.runs.get(id)).toMatchObject({
      status: "pending",
      waitingFor: { reason: "signal", signal: "approved", key: "order-7" },
    });
    const { status, body } = await send("approved", { key: "order-7", value: { by: "ada" } });
    expect({ status, body }).toEqual({ status: 200, body: { ok: true, repeated: false } });
    const run = await until("the run has completed", async () => {
      await holdfast.tick({ limit: 5 });
      const found = await holdfast.runs.get(id);
      return found?.status === "completed" ? found : null;
    });
    expect(run.result).toMatchObject({ value: { by: "ada" } });
  });

  test("the same value again is repeated, another one is a conflict that changes nothing", async () => {
    await send("approved", { key: "order-7", value: { a: 1, b: 2 } });
    const again = await send("approved", { key: "order-7", value: { b: 2, a: 1 } });
    expect(again).toMatchObject({ status: 200, body: { ok: true, repeated: true } });
    const other = await send("approved", { key: "order-7", value: { a: 2 } });
    expect(other).toMatchObject({
      status: 409,
      body: {
        error: "signal_conflict",
        detail: expect.stringContaining(
          "approved with the key order-7 was sent with another value",
        ),
      },
    });
    const last = await send("approved", { key: "order-7", value: { a: 1, b: 2 } });
    expect(last.body).toEqual({ ok: true, repeated: true });
  });

  test("no value is null", async () => {
    expect((await send("done", { key: "1" })).body).toEqual({ ok: true, repeated: false });
    expect((await send("done", { key: "1", value: null })).body.repeated).toBe(true);
  });

  test.each<[string, string, unknown, number, RegExp]>([
    ["no key", "done", { value: 1 }, 400, /key/],
    ["an empty key", "done", { key: "" }, 400, /key/],
    ["a key that is a number", "done", { key: 7 }, 400, /key/],
    ["a key of 501 characters", "done", { key: "k".repeat(501) }, 400, /key/],
    ["NUL in the key", "done", { key: "a\0b" }, 400, /NUL/],
    ["a name of 201 characters", "n".repeat(201), { key: "1" }, 400, /name/],
    ["NUL in the name", "a%00b", { key: "1" }, 400, /NUL/],
    ["an unknown member", "done", { key: "1", valu: 1 }, 400, /valu/],
    ["a value over 256 KiB", "done", { key: "1", value: "x".repeat(262_143) }, 413, /limit/],
    ["a value that is too deep", "done", { key: "1", value: deep(101) }, 400, /deep/],
  ])("%s is refused by name", async (_, name, body, status, says) => {
    const refused = await send(name, body);
    expect({ status: refused.status, text: refused.text }).toEqual({
      status,
      text: expect.stringMatching(says),
    });
  });

  test("a value of 256 KiB and 100 levels with NUL in it is stored as it is", async () => {
    const value = { deep: deep(99), text: "\0".repeat(10), long: "x".repeat(261_000) };
    expect((await send("done", { key: "1", value })).status).toBe(200);
    expect((await send("done", { key: "1", value })).body.repeated).toBe(true);
  });

  test("a secret that is limited to jobs or queues sends no signals", async () => {
    for (const limits of [{ jobs: ["approval"] }, { queues: ["default"] }]) {
      const name = Object.keys(limits).join();
      const { secret } = await house.holdfast.keys.create(name, { scopes: ["enqueue"], ...limits });
      const refused = await send("approved", { key: "order-7" }, secret);
      expect(refused).toMatchObject({ status: 403, body: { error: "secret_limited" } });
    }
  });

  test("client.signal repeats a call without an answer, and a conflict is a refusal", async () => {
    let calls = 0;
    const client = createClient({
      url: "http://jobs.test",
      secret: SECRETS.enqueue,
      fetch: async (input, init) => {
        calls += 1;
        const response = await house.handler(new Request(input as string, init), {
          remoteAddress: "198.18.0.1",
        });
        if (calls > 1) return response;
        throw new TypeError("fetch failed", { cause: new Error("the connection was cut") });
      },
    });
    const options = { key: "order-7", value: { by: "ada" } };
    expect(await client.signal("approved by/ada?", options)).toEqual({ ok: true, repeated: true });
    expect(calls).toBe(2);
    expect((await send("approved%20by%2Fada%3F", options)).body.repeated).toBe(true);
    const refused = await client
      .signal("approved by/ada?", { key: "order-7" })
      .catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(RequestRefusedError);
    expect(refused).toMatchObject({ status: 409, error: "signal_conflict" });
  });
});

function deep(levels: number): unknown {
  let value: unknown = [];
  for (let level = 1; level < levels; level += 1) value = [value];
  return value;
}
