// Every mutant there is, and the reading of their texts. The bugs are data: none of them is in the
// product's code, and `test/mutants.test.ts` sees to it that each still fits that code.

import { ALERT_MUTANTS } from "./alerts.mjs";
import { DISPATCH_MUTANTS } from "./dispatch.mjs";
import { LEASE_MUTANTS } from "./leases.mjs";
import { LIMIT_MUTANTS } from "./limits.mjs";
import { LOCK_MUTANTS } from "./locks.mjs";
import { RUN_MUTANTS } from "./runs.mjs";
import { SCHEDULE_MUTANTS } from "./schedules.mjs";
import { TICK_MUTANTS } from "./ticks.mjs";
import { TRANSACTION_MUTANTS } from "./transactions.mjs";
import { WAIT_MUTANTS } from "./waits.mjs";
import { WORK_MUTANTS } from "./work.mjs";

/**
 * One deliberate bug.
 * @typedef {object} Mutant
 * @property {string} name
 * @property {string} promise what it breaks: S1 … S16 and L1 … L6 are the promises of the design
 * @property {string} file where, from the root of the repository
 * @property {string} find text that occurs there exactly once
 * @property {string} replace what takes its place
 * @property {readonly SuiteName[]} suites that must kill it, in the order in which they are tried
 */
/** @typedef {keyof typeof import("./suites.mjs").SUITES} SuiteName */

/** @type {readonly Mutant[]} */
export const MUTANTS = [
  ...LEASE_MUTANTS,
  ...RUN_MUTANTS,
  ...WORK_MUTANTS,
  ...LIMIT_MUTANTS,
  ...TICK_MUTANTS,
  ...SCHEDULE_MUTANTS,
  ...TRANSACTION_MUTANTS,
  ...LOCK_MUTANTS,
  ...DISPATCH_MUTANTS,
  ...ALERT_MUTANTS,
  ...WAIT_MUTANTS,
];

/**
 * @param {string} text
 * @param {string} part
 */
export function occurrences(text, part) {
  return text.split(part).length - 1;
}

/**
 * The file's text with the bug in it.
 * @param {string} text
 * @param {Mutant} mutant
 */
export function mutated(text, { name, find, replace }) {
  const times = occurrences(text, find);
  if (times !== 1) throw new Error(`The text of mutant ${name} occurs ${times} times, not once.`);
  // A function, so that dollar signs in the text mean themselves.
  return text.replace(find, () => replace);
}
