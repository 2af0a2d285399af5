// Tests the handler of a remote worker while its server restarts.

import { expect, test } from "vitest";
import { HeldRun } from "./held-run.js";
import { type ClaimedRun, Wire } from "./wire.js";

/** A server that refuses connections for a number of calls, then accepts all of them. */
function restarting(refusals: number) {
  const calls: string[] = [];
  let heard = () => {};
  const firstCall = new Promise<void>((resolve) => {
    heard = resolve;
  });
  const fetch = async (url: string | URL | Request) => {
    calls.push(String(url).replace(/.*\//, ""));
    heard();
    if (calls.length <= refusals) {
      const cause = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
      throw new TypeError("fetch failed", { cause });
    }
    return Response.json({ ok: true, items: [{ key: "a", status: "stored" }] });
  };
  return { calls, firstCall, wire: new Wire({ url: "http://server", secret: undefined, fetch }) };
}

function held(wire: Wire): HeldRun {
  const run = { id: "r", job: "study", fence: 1, attempt: 1, leaseMs: 30_000, timeoutMs: 60_000 };
  return new HeldRun({ run: run as unknown as ClaimedRun, wire, sentMs: 0 });
}

test("progress and items are repeated while the lease lasts, so that a restart of the server burns no attempt", async () => {
  // Refuses more often than the client repeats an ordinary call.
  const { calls, wire } = restarting(5);
  await held(wire).execute(async (_: never, ctx) => {
    await ctx.progress({ stage: "reading" });
    await ctx.item("a", 1);
  });
  expect(calls.slice(5)).toEqual(["progress", "items", "complete"]);
});

test("a call that is being repeated ends when the run is lost", async () => {
  const { firstCall, wire } = restarting(Number.POSITIVE_INFINITY);
  const run = held(wire);
  let thrown: unknown;
  const over = run.execute(async (_: never, ctx) => {
    await ctx.progress({ stage: "reading" }).catch((error: unknown) => {
      thrown = error;
      throw error;
    });
  });
  await firstCall;
  run.lost();
  await over;
  expect(thrown).toBeInstanceOf(Error);
});
