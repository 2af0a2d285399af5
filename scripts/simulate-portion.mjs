// Runs seeds as a child process of simulate.mjs, until the parent disconnects.

import path from "node:path";
import { fileURLToPath } from "node:url";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
/** @type {typeof import("../src/testing/simulator/index.js")} */
const { runCampaign } = await import(path.join(root, "build/testing/simulator/index.js"));

process.on("message", async (/** @type {{ from: number, seeds: number }} */ portion) => {
  process.send?.(await runCampaign(portion));
});
process.send?.("ready");
