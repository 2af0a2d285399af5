// Compares the cron engine with the oracle for every zone, every change of its clocks from 1990 to 2040, and every
// expression of the corpus: `node scripts/oracle.mjs`. Takes minutes.
//   --seconds 180     stop after this time, and print how to continue
//   --from <zone>     continue at this zone
//   --zone <zone>     only this zone

import { parseArgs } from "node:util";
import { tsImport } from "tsx/esm/api";

/** @type {typeof import("../test/oracle/compare.js")} */
const { comparer } = await tsImport("../test/oracle/compare.ts", import.meta.url);
/** @type {typeof import("../test/oracle/cron-oracle.js")} */
const { changesOf, wallClock } = await tsImport("../test/oracle/cron-oracle.ts", import.meta.url);
/** @type {typeof import("../test/oracle/cron-cases.js")} */
const { FROM_MS, UNTIL_MS, EXPRESSIONS } = await tsImport(
  "../test/oracle/cron-cases.ts",
  import.meta.url,
);

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "3600" },
    from: { type: "string" },
    zone: { type: "string" },
  },
});
const endAt = performance.now() + Number(values.seconds) * 1_000;
const all = Intl.supportedValuesOf("timeZone");
const begin = values.from === undefined ? 0 : all.indexOf(values.from);
if (begin < 0) throw new Error(`There is no zone ${values.from}.`);
const zones = values.zone === undefined ? all.slice(begin) : [values.zone];

let changeCount = 0;
let comparedCount = 0;
let tickCount = 0;
let differenceCount = 0;
let stepsMax = 0;
let doneCount = 0;
for (const zone of zones) {
  if (performance.now() > endAt) {
    console.log(`Stopped; go on with --from ${zone}`);
    break;
  }
  const clock = wallClock(zone);
  const compareAround = comparer(zone, clock);
  const changes = changesOf(clock, FROM_MS, UNTIL_MS);
  // A zone that never changes is compared once.
  for (const atMs of changes.length === 0 ? [Date.UTC(2026, 0, 1)] : changes) {
    const compared = compareAround(atMs);
    comparedCount += compared.comparedCount;
    tickCount += compared.tickCount;
    stepsMax = Math.max(stepsMax, compared.stepsMax);
    differenceCount += compared.differences.length;
    for (const line of compared.differences.slice(0, 5)) console.log(line);
  }
  changeCount += changes.length;
  doneCount++;
}
console.log(
  `tzdata ${process.versions.tz ?? "unknown"}, Node ${process.versions.node}: ${doneCount} of ${all.length} zones, ` +
    `${changeCount} changes of clocks, ${EXPRESSIONS.length} expressions, ${comparedCount} comparisons, ` +
    `${tickCount} ticks, at most ${stepsMax} steps of work per tick, ${differenceCount} differences`,
);
process.exitCode = differenceCount > 0 ? 1 : 0;
