// How many round trips of a worker are under way at once, and what each carries.

import { expect, test } from "vitest";
import type { ExchangeParams, Settlement } from "../store/store.js";
import type { ClaimPlanner } from "./claim-planner.js";
import { Exchange, SettlementBuffer, type WorkerExchangeParams } from "./exchange.js";
import { Leases } from "./leases.js";

function drain(params: { readonly ended: number; readonly wanted: number }) {
  const sent: Pick<ExchangeParams, "settlements" | "limit">[] = [];
  const settlementBuffer = new SettlementBuffer();
  for (let count = 0; count < params.ended; count += 1) settlementBuffer.push({} as Settlement);
  const claimPlanner: Partial<ClaimPlanner> = {
    hasMore: true,
    wanted: () => params.wanted,
    wantsSuspect: () => false,
    nextRequest: () => ({ limit: params.wanted, wantsSuspect: false, hints: 0 }),
    sent: () => ({}),
  };
  const exchange = (asked: ExchangeParams) => {
    sent.push(asked);
    // Nothing is ever answered.
    return new Promise(() => {});
  };
  const exchanges = new Exchange({
    store: { exchange },
    ports: {
      clock: { wallMs: () => 0, monotonicMs: () => 0 },
      ids: { unique: () => "" },
      chance: { next: () => 0 },
    },
    jobs: new Map(),
    backoff: { isOn: false },
    over: new AbortController().signal,
    claimPlanner,
    settlementBuffer,
    leases: new Leases(),
  } as unknown as WorkerExchangeParams);
  while (exchanges.isWanted) void exchanges.send();
  return sent.map(({ settlements, limit }) => [settlements.length, limit]);
}

test("a backlog keeps three under way, which share what has ended", () => {
  expect(drain({ ended: 2_500, wanted: 1_000 })).toEqual([
    [1_000, 1_000],
    [1_000, 1_000],
    [500, 1_000],
  ]);
});

test("one alone carries what is little", () => {
  expect(drain({ ended: 50, wanted: 99 })).toEqual([[50, 99]]);
});
