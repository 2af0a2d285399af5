// How a presented secret is compared: always all of it, always with all of them.

import { beforeEach, expect, test, vi } from "vitest";

const compared = vi.hoisted(() => [] as (readonly [number, number])[]);
vi.mock("node:crypto", async (original) => {
  const crypto = await original<typeof import("node:crypto")>();
  const timingSafeEqual = (a: Buffer, b: Buffer) => {
    compared.push([a.length, b.length]);
    return crypto.timingSafeEqual(a, b);
  };
  return { ...crypto, timingSafeEqual };
});
const { readSecrets } = await import("./credentials.js");

beforeEach(() => {
  compared.length = 0;
});

const RIGHT = "the-secret-of-the-reader";
const secrets = readSecrets(
  {
    read: RIGHT,
    trigger: "one-of-the-callers, another-of-the-callers",
    admin: "the-secret-of-all",
  },
  {},
);

test.each([
  ["right", RIGHT, ["read"]],
  ["of every scope", "the-secret-of-all", ["trigger", "enqueue", "worker", "read", "admin"]],
  ["right but for its last letter", `${RIGHT.slice(0, -1)}x`, []],
  ["right and a letter more", `${RIGHT}x`, []],
  ["wrong from the first letter on", "x", []],
  ["empty", "", []],
  ["long", "x".repeat(100_000), []],
])("one that is %s takes four comparisons of 32 bytes in constant time", (_, presented, scopes) => {
  expect([...(secrets.find(presented)?.scopes ?? [])]).toEqual(scopes);
  expect(compared).toEqual(Array.from({ length: 4 }, () => [32, 32]));
});
