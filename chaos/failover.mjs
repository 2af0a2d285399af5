// A primary dies under load and its standby takes over. With a synchronous standby nothing that was
// acknowledged is lost; with an asynchronous one it is told what is, and nothing happens twice unnoticed.

import { runCampaign } from "./campaign.mjs";
import { openPair } from "./pair.mjs";

/** Load before the primary dies, and after its standby was promoted. */
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
    tell(`failover ${at + 1} of ${times}: ${said.join("; ") || "nothing to complain of"}`);
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
