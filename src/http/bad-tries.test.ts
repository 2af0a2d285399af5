// How long a peer that guesses has to wait, and which callers count as one peer.

import { expect, test } from "vitest";
import { BadTries, peerOf } from "./bad-tries.js";
import { requestOf } from "./request.js";

const START_MS = 1_000_000;

test("ten wrong secrets cost nothing, each further one doubles the wait, up to a minute", () => {
  const tries = new BadTries();
  const waits = Array.from({ length: 20 }, () => tries.note("a", START_MS));
  expect(waits).toEqual([...Array(10).fill(0), 1, 2, 4, 8, 16, 32, 60, 60, 60, 60]);
  expect(tries.waitS("a", START_MS)).toBe(60);
  expect(tries.waitS("a", START_MS + 60_000)).toBe(0);
  expect(tries.waitS("b", START_MS)).toBe(0);
  expect(tries.note("b", START_MS)).toBe(0);
});

test("at the longest wait a peer gets one guess a minute, and after twenty quiet minutes all is forgotten", () => {
  const tries = new BadTries();
  for (let n = 0; n < 1_000; n += 1) tries.note("a", START_MS);
  let nowMs = START_MS;
  for (let n = 0; n < 100; n += 1) {
    nowMs += 1_000 * tries.waitS("a", nowMs);
    expect(tries.note("a", nowMs)).toBe(60);
  }
  expect(tries.note("a", nowMs + 20 * 60_000)).toBe(0);
});

test("ten thousand peers are remembered, and no more", () => {
  const tries = new BadTries();
  for (let n = 0; n < 20; n += 1) tries.note("first", START_MS);
  for (let n = 0; n < 10_000; n += 1) tries.note(`p${n}`, START_MS);
  expect(tries.waitS("first", START_MS)).toBe(0);
});

test.for([
  ["203.0.113.9", null, "203.0.113.9"],
  ["::ffff:203.0.113.9", null, "203.0.113.9"],
  ["2001:4860:1:2:3:4:5:6", null, "2001:4860:1:2"],
  ["2001:4860:0001:2::9", null, "2001:4860:1:2"],
  ["2001:4860::9", null, "2001:4860:0:0"],
  ["::1", null, "0:0:0:0"],
  // A proxy beside the server names the client; whatever the client wrote itself comes before it.
  ["127.0.0.1", "198.51.100.7", "198.51.100.7 by 127.0.0.1"],
  ["10.0.0.3", "1.1.1.1, 198.51.100.7", "198.51.100.7 by 10.0.0.3"],
  ["10.0.0.3", "unknown", "10.0.0.3"],
  ["10.0.0.3", "", "10.0.0.3"],
  ["8.8.8.8", "198.51.100.7", "8.8.8.8"],
  ["unknown", "198.51.100.7", null],
] as const)("%s with X-Forwarded-For %s counts as %s", ([address, forwarded, peer]) => {
  const headers = forwarded === null ? {} : { "x-forwarded-for": forwarded };
  expect(peerOf(requestOf(new Request("http://h/", { headers })), address)).toBe(peer);
});
