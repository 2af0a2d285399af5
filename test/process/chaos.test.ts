// A minute of real chaos: four processes on one database, killed, frozen, stopped and cut off by a
// seed, and afterwards a history in which nothing is lost, doubled or out of order.
// `npm run chaos` does the same for as long as it is told to.

import { describe, expect, test } from "vitest";
import { type Report, runCampaign } from "../../scripts/chaos/campaign.mjs";
import { POSTGRES_URL } from "./crew.js";

const SEED = 20;
const SECONDS = 25;
/** Healing and running dry have limits of their own, and a violation says which one was passed. */
const LIMIT_MS = 480_000;

/** Everything happened that a campaign is for; how much of it is the machine's affair. */
function expectChaos({ faults, counts, seen, operations }: Report): void {
  expect(faults.kills).toBeGreaterThan(0);
  expect(faults.longFreezes).toBeGreaterThan(0);
  expect(faults.stops).toBeGreaterThan(0);
  expect(seen.takeovers).toBeGreaterThan(0);
  expect(operations.answered).toBeGreaterThan(50);
  expect(counts.completed).toBeGreaterThan(50);
  expect(counts.looks).toBeGreaterThan(0);
  expect(counts.boots).toBeGreaterThan(faults.kills);
}

async function campaignOn(database: "sqlite" | "postgres"): Promise<Report> {
  console.log(`chaos on ${database}: seed ${SEED}, ${SECONDS} s`);
  const report = await runCampaign({ database, seconds: SECONDS, seed: SEED });
  const { faults, seen, counts, operations } = report;
  console.log(JSON.stringify({ database, faults, seen, counts, operations }));
  return report;
}

test(
  "processes on one SQLite file are killed, frozen and stopped: the history keeps every promise",
  async () => {
    const report = await campaignOn("sqlite");
    expect(report.violations).toEqual([]);
    expectChaos(report);
  },
  LIMIT_MS,
);

describe.skipIf(POSTGRES_URL === undefined)("with a server of its own", () => {
  test(
    "processes on one PostgreSQL are killed, frozen, stopped and cut off, and the server crashes: the same",
    async () => {
      const report = await campaignOn("postgres");
      expect(report.violations).toEqual([]);
      expectChaos(report);
      expect(report.faults.cuts).toBeGreaterThan(0);
      expect(report.faults.crashes).toBeGreaterThan(0);
    },
    LIMIT_MS,
  );
});
