// What the oracle and the product are compared on: expressions, policies, and the zones whose clocks
// have done the strangest things. Used by test/cron-oracle.test.ts and scripts/oracle.mjs.

import type { OracleDst } from "./cron-oracle.js";

export const EXPRESSIONS = [
  "30 2 * * *",
  "0,30 2 * * *",
  "30 1,2 * * *",
  "0 2,3 * * *",
  "0 0 * * *",
  "15 0 * * *",
  "0,20,40 0-3 * * *",
  "59 23 * * *",
  "15 2 * * mon-fri",
  "30 2 * 3,4,10,11 7#1,0#2",
  "5 2 */2 * 0,6",
  "5 2 1-15 * 0,6",
  "45 1 * * 5L",
  "30 2 L * *",
  "0 1 1W,15W * *",
  "30 0 L-2,LW * *",
  "10 0 1,30,31 * mon-fri",
  "0 12 29 2 *",
  "23 0/2 * * *",
  "*/15 * * * *",
  "0 * * * *",
  "*/30 1-3 * * *",
  "7 */2 * * *",
  "20 * 8-14 * */7",
  "15,45 30 2 * * *",
  "*/20 */10 1 * * *",
  "30 59 23 * * *",
  "0 0 12 L-3 * ?",
  "@daily",
  "@hourly",
  "@weekly",
  "@monthly",
] as const;

export const POLICIES: readonly OracleDst[] = [
  { gap: "after", overlap: "first" },
  { gap: "after", overlap: "second" },
  { gap: "after", overlap: "both" },
  { gap: "skip", overlap: "first" },
  { gap: "skip", overlap: "second" },
  { gap: "skip", overlap: "both" },
];

/** Half-hour shifts, shifts at midnight, skipped days, four shifts a year, two hours at once. */
export const HARD_ZONES = [
  "America/New_York",
  "Australia/Lord_Howe",
  "America/Santiago",
  "Africa/Cairo",
  "Asia/Beirut",
  "Pacific/Apia",
  "Pacific/Kwajalein",
  "Pacific/Kiritimati",
  "Africa/Casablanca",
  "Antarctica/Troll",
  "Asia/Gaza",
  "Asia/Pyongyang",
  "America/Caracas",
  "Europe/London",
  "Asia/Tehran",
  "Asia/Kathmandu",
];

export const FROM_MS = Date.UTC(1990, 0, 1);
export const UNTIL_MS = Date.UTC(2041, 0, 1);
