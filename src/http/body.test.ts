// A body that does not come: what is waited for, and for how long. What is in a body is in test/http/security.test.ts.

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { readJson } from "./body.js";
import { type BodySource, type HttpRequest, requestOf } from "./request.js";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Sends these, and then nothing, for ever. */
function stalled(...pieces: string[]): BodySource {
  let finish: () => void = () => undefined;
  return {
    read: (take) =>
      new Promise((resolve) => {
        finish = resolve;
        for (const piece of pieces) take(new TextEncoder().encode(piece));
      }),
    cancel: () => finish(),
  };
}

function asked(body: BodySource): HttpRequest {
  const headers = { "content-type": "application/json" };
  return { ...requestOf(new Request("http://h/", { method: "POST", headers })), body };
}

test("one that never ends is given up after 30 s, also where what came would be right", async () => {
  const refusal = readJson(asked(stalled('{"input":', "1}"))).catch((error) => error.refusal);
  await vi.advanceTimersByTimeAsync(29_999);
  expect(vi.getTimerCount()).toBe(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(await refusal).toMatchObject({ status: 408, error: "body_too_slow" });
});

test("one that is there leaves no timer behind, and comes in any pieces", async () => {
  const text = JSON.stringify({ input: "é👩‍🚀" });
  const bytes = new TextEncoder().encode(text);
  const inPieces: BodySource = {
    read: async (take) => {
      for (const byte of bytes) take(Uint8Array.of(byte));
    },
    cancel: () => undefined,
  };
  expect(await readJson(asked(inPieces))).toEqual({ input: "é👩‍🚀" });
  expect(vi.getTimerCount()).toBe(0);
});

test("what follows the limit is not asked for", async () => {
  let given = 0;
  const endless: BodySource = {
    read: async (take) => {
      for (;;) {
        given += 1;
        take(new Uint8Array(64 * 1024));
      }
    },
    cancel: () => undefined,
  };
  const refusal = await readJson(asked(endless)).catch((error) => error.refusal);
  expect(refusal).toMatchObject({ status: 413, error: "body_too_large" });
  expect(given).toBe(33);
});
