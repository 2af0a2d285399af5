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

test("a body that never ends is refused after 30 s, even if its beginning is valid", async () => {
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

test("one that comes in more than 10,000 pieces is refused, however small they are", async () => {
  let given = 0;
  const crumbs: BodySource = {
    read: async (take) => {
      for (; given < 1_000_000; given += 1) take(Uint8Array.of(0x20));
    },
    cancel: () => undefined,
  };
  const refusal = await readJson(asked(crumbs)).catch((error) => error.refusal);
  expect(refusal).toMatchObject({ status: 413, error: "body_too_large" });
  expect(given).toBe(10_000);
});

test("nothing beyond the limit is read", async () => {
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

const whole = (text: string): BodySource => ({
  read: async (take) => take(new TextEncoder().encode(text)),
  cancel: () => undefined,
});

test("one of very many members is refused before it is parsed: that would take a second", async () => {
  const parse = vi.spyOn(JSON, "parse");
  const names = Array.from({ length: 150_000 }, (_, at) => `"k${at}":1`).join(",");
  for (const text of [`{${names}}`, `[${"1,".repeat(150_000)}1]`]) {
    const refusal = await readJson(asked(whole(text))).catch((error) => error.refusal);
    expect(refusal).toMatchObject({ status: 400, error: "body_invalid" });
  }
  expect(parse).not.toHaveBeenCalled();
  parse.mockRestore();
});

test("members inside of an input are not counted, and neither are commas in texts", async () => {
  const input = Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`k${at}`, [at, at]]));
  const body = { input, key: `${'\\"'.repeat(500)}${",".repeat(500)}`, tags: [","] };
  expect(await readJson(asked(whole(JSON.stringify(body))))).toEqual(body);
  const many = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`k${at}`, at]));
  expect(await readJson(asked(whole(JSON.stringify(many))))).toEqual(many);
});
