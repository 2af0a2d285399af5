// How long a peer that guesses has to wait, and which callers count as one peer.

import { expect, test } from "vitest";
import { GuessThrottle, peerOf } from "./guessing.js";

const START_MS = 1_000_000;

test("ten wrong secrets cost nothing, each further one doubles the wait, up to a minute", () => {
  const tries = new GuessThrottle();
  const waits = Array.from({ length: 20 }, () => tries.note("a", START_MS));
  expect(waits).toEqual([...Array(10).fill(0), 1, 2, 4, 8, 16, 32, 60, 60, 60, 60]);
  expect(tries.waitS("a", START_MS)).toBe(60);
  expect(tries.waitS("a", START_MS + 60_000)).toBe(0);
  expect(tries.waitS("b", START_MS)).toBe(0);
  expect(tries.note("b", START_MS)).toBe(0);
});

test("at the longest wait a peer gets one guess a minute, and after twenty quiet minutes all is forgotten", () => {
  const tries = new GuessThrottle();
  for (let n = 0; n < 1_000; n += 1) tries.note("a", START_MS);
  let nowMs = START_MS;
  for (let n = 0; n < 100; n += 1) {
    nowMs += 1_000 * tries.waitS("a", nowMs);
    expect(tries.note("a", nowMs)).toBe(60);
  }
  expect(tries.note("a", nowMs + 20 * 60_000)).toBe(0);
});

test("ten thousand peers are remembered, and no more", () => {
  const tries = new GuessThrottle();
  for (let n = 0; n < 20; n += 1) tries.note("first", START_MS);
  for (let n = 0; n < 10_000; n += 1) tries.note(`p${n}`, START_MS);
  expect(tries.waitS("first", START_MS)).toBe(0);
});

test.for([
  ["203.0.113.9", "203.0.113.9"],
  ["::ffff:203.0.113.9", "203.0.113.9"],
  ["2001:4860:1:2:3:4:5:6", "2001:4860:1:2"],
  ["2001:4860:0001:2::9", "2001:4860:1:2"],
  ["2001:4860::9", "2001:4860:0:0"],
  ["::1", "0:0:0:0"],
  ["unknown", null],
  // As a server passes it that believes what callers write in a header.
  ["my-name-is-legion", "no address"],
  ["1.2.3", "no address"],
] as const)("%s counts as %s", ([address, peer]) => {
  expect(peerOf(address)).toBe(peer);
});
