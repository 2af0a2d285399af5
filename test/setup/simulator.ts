// Compiles the simulator for processes of its own: inside of a test runner, whose modules reach each
// other through getters, a seed takes twice as long. Types are not looked at, as mutants may break them.

import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = path.dirname(path.dirname(path.dirname(fileURLToPath(import.meta.url))));

/** Where the compiled sources are, for campaign.ts. */
const VARIABLE = "HOLDFAST_TEST_SIMULATOR";

export function setup(): () => void {
  // Inside of the repository, so that its packages are found from there.
  const folder = path.join(root, ".holdfast", `simulator-${process.pid}`);
  const compiler = path.join(root, "node_modules", "typescript", "bin", "tsc");
  const options = ["-p", "tsconfig.build.json", "--noCheck", "--declaration", "false"];
  const args = [compiler, ...options, "--outDir", folder];
  const compiled = spawnSync(process.execPath, args, { cwd: root, stdio: "inherit" });
  if (compiled.status !== 0) throw new Error("The simulator could not be compiled.");
  process.env[VARIABLE] = folder;
  return () => {
    delete process.env[VARIABLE];
    fs.rmSync(folder, { recursive: true, force: true });
  };
}
