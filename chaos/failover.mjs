// Kills a primary under load and promotes its standby. A synchronous standby loses no acknowledged work. For an
// asynchronous one the losses are counted, and no effect happens twice without an explanation.

import { runCampaign } from "./campaign.mjs";
import { openPair } from "./standby-pair.mjs";

/** The duration of the load before the primary dies, and after the promotion of its standby. */
const SECONDS = 5;
const FAILS_AT_MS = 2_000;

/**
 * @param {{ times: number, seed: number, isSynchronous: boolean, tell: (line: string) => void }} params
 */
export async function failovers({ times, seed, isSynchronous, tell }) {
  /** @type {Record<string, number>} */
  const sums = { failovers: 0, runs: 0, completed: 0, ticks: 0, operations: 0, answered: 0 };
  /** @type {Record<string, number>} */
  const forgiven = {};
  /** @type {{ check: string, message: string }[]} */
  const violations = [];
  for (let at = 0; at < times; at += 1) {
    const report = await runFailover({ seed: seed + at, isSynchronous, tell });
    add(sums, {
      failovers: report.faults.failovers ?? 0,
      runs: report.counts.runs,
      completed: report.counts.completed,
      ticks: report.counts.ticks,
      operations: report.operations.asked ?? 0,
      answered: report.operations.answered ?? 0,
    });
    add(forgiven, report.forgiven);
    violations.push(...report.violations);
    const said = report.violations.map(({ check, message }) => `${check}: ${message}`);
    tell(`failover ${at + 1} of ${times}: ${said.join("; ") || "no problems"}`);
  }
  return { standby: isSynchronous ? "sync" : "async", seed, ...sums, lost: forgiven, violations };
}

/** @param {{ seed: number, isSynchronous: boolean, tell?: (line: string) => void }} params */
export function runFailover({ seed, isSynchronous, tell = () => {} }) {
  const fault = /** @type {const} */ ({ kind: "failover", victim: seed, forMs: 0, isForAll: true });
  return runCampaign({
    database: "postgres",
    seconds: SECONDS,
    seed,
    plan: [{ ...fault, atMs: FAILS_AT_MS }],
    roles: ["worker", "worker", "scheduler"],
    place: ({ timeline }) => openPair({ isSynchronous, timeline }),
    tell,
  });
}

/** @param {Record<string, number>} sums @param {Record<string, number>} more */
function add(sums, more) {
  for (const [name, count] of Object.entries(more)) sums[name] = (sums[name] ?? 0) + count;
}
