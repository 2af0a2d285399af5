// Sums up the rounds of a campaign, and keeps them in a file from which the campaign can continue.

import fs from "node:fs";
import { LEASE_MAX_MS, POLL_MS } from "./plan.mjs";

/** @typedef {import("./campaign.mjs").Report} Report */
/**
 * @typedef {object} Campaign the content of the file
 * @property {"sqlite" | "postgres"} database
 * @property {number} seed of the first round; each later round adds one
 * @property {boolean} isPooled
 * @property {Report[]} rounds
 */

/** The longest time of a takeover: the lease, plus a poll and a second. */
export const OVERDUE_MAX_MS = POLL_MS + 1_000;
export const TAKEOVER_MAX_MS = LEASE_MAX_MS + OVERDUE_MAX_MS;

/**
 * @param {string | undefined} file
 * @param {Omit<Campaign, "rounds">} wanted
 * @returns {Campaign}
 */
export function readCampaign(file, wanted) {
  if (file === undefined || !fs.existsSync(file)) return { ...wanted, rounds: [] };
  /** @type {Campaign} */
  const found = JSON.parse(fs.readFileSync(file, "utf8")).campaign;
  for (const name of /** @type {const} */ (["database", "seed", "isPooled"])) {
    if (found[name] === wanted[name]) continue;
    throw new Error(
      `${file} is of another campaign: its ${name} is ${found[name]}, not ${wanted[name]}. Give another file, or the same options.`,
    );
  }
  return found;
}

/** Writes a temporary file and renames it, so that an interrupted campaign leaves a whole file. */
export function writeCampaign(/** @type {string} */ file, /** @type {Campaign} */ campaign) {
  fs.writeFileSync(`${file}.new`, `${JSON.stringify({ totals: totalsOf(campaign), campaign })}\n`);
  fs.renameSync(`${file}.new`, file);
}

/** @param {Campaign} campaign */
export function totalsOf({ database, seed, isPooled, rounds }) {
  const sum = (/** @type {"faults" | "seen" | "counts" | "operations" | "duplicates"} */ part) => {
    /** @type {Record<string, number>} */
    const all = {};
    for (const round of rounds)
      for (const [name, count] of Object.entries(round[part])) all[name] = (all[name] ?? 0) + count;
    return all;
  };
  const violations = rounds.flatMap((round) => round.violations);
  const broken = (/** @type {string[]} */ checks) =>
    violations.filter(({ check }) => checks.includes(check)).length;
  return {
    database,
    seed,
    isPooled,
    rounds: rounds.length,
    seconds: rounds.reduce((all, { seconds }) => all + seconds, 0),
    operations: sum("operations"),
    counts: sum("counts"),
    faults: sum("faults"),
    seen: sum("seen"),
    duplicates: sum("duplicates"),
    takeovers: {
      count: rounds.reduce((all, { takeovers }) => all + takeovers.length, 0),
      maxAllowedMs: TAKEOVER_MAX_MS,
      unbrokenMs: spread(rounds.flatMap((round) => round.takeovers.map(unbrokenMsOf))),
      overdueMs: spread(
        rounds.flatMap((round) => round.takeovers.flatMap(({ overdueMs }) => overdueMs ?? [])),
      ),
      ableMs: spread(rounds.flatMap((round) => round.takeovers.map(({ ableMs }) => ableMs))),
      wallMs: spread(rounds.flatMap((round) => round.takeovers.map(({ wallMs }) => wallMs))),
    },
    verdict: {
      lost: broken(["S11", "S13", "S16"]),
      doubledEffects: broken(["E", "S9"]),
      doubledTicks: broken(["S4", "S6"]),
      stuck: broken(["L"]),
      violations: violations.length,
    },
  };
}

/** Older rounds have only the sum, which is at least as long. @param {Report["takeovers"][number]} takeover */
export function unbrokenMsOf({ unbrokenMs, ableMs }) {
  return unbrokenMs ?? ableMs;
}

/** @param {number[]} values */
function spread(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (/** @type {number} */ share) =>
    Math.round(sorted[Math.ceil(sorted.length * share) - 1] ?? 0);
  return { p50: at(0.5), p90: at(0.9), p99: at(0.99), max: Math.round(sorted.at(-1) ?? 0) };
}
