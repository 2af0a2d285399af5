// One half of the campaign, in a process of its own: `node half-process.mjs <compiled sources> <request as JSON>`.
// Prints its report as JSON.

import path from "node:path";
import { pathToFileURL } from "node:url";

const [, , folder = "", request = "{}"] = process.argv;
/** @type {{ from: number, seeds: number, budgetMs: number }} */
const { from, seeds, budgetMs } = JSON.parse(request);
const { href } = pathToFileURL(path.join(folder, "testing", "simulator", "index.js"));
/** @type {typeof import("../../src/testing/simulator/index.js")} */
const { runCampaign } = await import(href);

const startedMs = performance.now();
/** @type {string[]} */
const few = [];
const report = await runCampaign({
  from,
  seeds,
  onProgress: ({ seed, instances, virtualMs, operations, faults }) => {
    if (instances < 3 || virtualMs < 3_600_000 || operations < 200 || faults < 20)
      few.push(`seed ${seed}: ${instances} ${virtualMs} ${operations} ${faults}`);
    return performance.now() - startedMs < budgetMs;
  },
});
const seconds = (performance.now() - startedMs) / 1_000;
process.stdout.write(JSON.stringify({ ...report, few, seconds }));
