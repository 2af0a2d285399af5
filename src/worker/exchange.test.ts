// Checks how many exchanges of a worker are in flight, and what each carries.

import { expect, test } from "vitest";
import type { ExchangeParams, Settlement } from "../store/claims.js";
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
  const exchange = (params: ExchangeParams) => {
    sent.push(params);
    // The database never answers.
    return new Promise(() => {});
  };
  const exchanges = new Exchange({
    store: { claims: { exchange } },
    ports: {
      clock: { wallMs: () => 0, monotonicMs: () => 0 },
      ids: { unique: () => "" },
      random: { next: () => 0 },
    },
    jobs: new Map(),
    backoff: { isOn: false },
    over: new AbortController().signal,
    claimPlanner,
    settlementBuffer,
    leases: new Leases(),
  } as unknown as WorkerExchangeParams);
  for (let round = 0; round < 10 && exchanges.isWanted; round += 1) void exchanges.send();
  return sent.map(({ settlements, limit }) => [settlements.length, limit]);
}

test("a backlog keeps three exchanges in flight, which share the settlements", () => {
  expect(drain({ ended: 2_500, wanted: 1_000 })).toEqual([
    [1_000, 1_000],
    [1_000, 1_000],
    [500, 1_000],
  ]);
});

test("a small backlog needs one exchange", () => {
  expect(drain({ ended: 50, wanted: 99 })).toEqual([[50, 99]]);
});
