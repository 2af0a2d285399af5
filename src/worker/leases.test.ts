// Checks which settlements count as all the runs of a lease, and in which order they are sent.

import { expect, test } from "vitest";
import type { Claim, Settlement } from "../store/claims.js";
import { Leases } from "./leases.js";

const NOW = { wallMs: 0, monotonicMs: 0 };

function leasesOf(...claims: readonly { fence: number; ids: readonly string[] }[]): Leases {
  const leases = new Leases();
  for (const { fence, ids } of claims) {
    const runs = ids.map((id) => ({ id }));
    leases.granted({ fence, leaseMs: 1, policy: { leaseMs: 1 }, runs } as unknown as Claim, NOW);
  }
  return leases;
}

const settled = (fence: number, ...ids: readonly string[]) =>
  ids.map((id) => ({ id, fence }) as Settlement);

test("settlements of all runs of a lease are whole, and come in the order of their claim", () => {
  const leases = leasesOf({ fence: 1, ids: ["a", "b", "c"] }, { fence: 2, ids: ["d"] });
  const inOrder = settled(1, "a", "b", "c");
  expect(leases.asWhole(inOrder)).toBe(inOrder);
  expect(leases.asWhole(settled(1, "c", "a", "b"))).toEqual(inOrder);
  expect(leases.asWhole(settled(2, "d"))).toEqual(settled(2, "d"));
});

test("part of a lease, more than one lease, one run twice and a lease of others are not whole", () => {
  const leases = leasesOf({ fence: 1, ids: ["a", "b"] }, { fence: 2, ids: ["c", "d"] });
  expect(leases.asWhole([])).toBeNull();
  expect(leases.asWhole(settled(1, "a"))).toBeNull();
  expect(leases.asWhole([...settled(1, "a"), ...settled(2, "c")])).toBeNull();
  expect(leases.asWhole([...settled(1, "a"), ...settled(2, "b")])).toBeNull();
  expect(leases.asWhole(settled(1, "a", "b", "a"))).toBeNull();
  expect(leases.asWhole(settled(1, "a", "a"))).toBeNull();
  expect(leases.asWhole(settled(3, "a", "b"))).toBeNull();
});

test("the remaining runs of a lease are not a whole lease", () => {
  const leases = leasesOf({ fence: 1, ids: ["a", "b"] });
  leases.letGo(1);
  expect(leases.asWhole(settled(1, "b"))).toBeNull();
});
