// Packs the package as it would be published, does the tutorial with it in an empty folder, and uses it
// there further: the types, one job on SQLite from start to end, and the command line.

import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { outsideOfNpm, pack, root, run } from "./packed.mjs";
import { doTutorial } from "./tutorial.mjs";

const SMOKE = `
import { Holdfast } from "holdfast";
import { createTestHoldfast } from "holdfast/testing";

const holdfast = new Holdfast({ database: "sqlite:smoke.db" });
const double = holdfast.job("double", {
  async run(input: { n: number }) {
    return { n: input.n * 2 };
  },
});
// The thread is a file of its own, which has to be found from wherever the library was put.
await holdfast.start({ worker: { heartbeat: "thread" } });
const { id } = await double.enqueue({ n: 21 });
await holdfast.runs.wait(id, { timeout: "30s" });
const run = await holdfast.runs.get(id);
await holdfast.stop();
const answer = run?.result as { n: number } | undefined;
if (run?.status !== "completed" || answer?.n !== 42) throw new Error(JSON.stringify(run));

const kit = await createTestHoldfast({
  setup(test) {
    test.schedule("daily", test.job("nothing", { run: async () => null }), { cron: "@daily" });
  },
});
await kit.start();
await kit.advance("3d");
if ((await kit.ranAt("daily")).length !== 3) throw new Error(JSON.stringify(await kit.runs()));
await kit.close();
`;

const bin = path.join(root, "node_modules", ".bin");
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), "holdfast-package-"));
const project = path.join(scratch, "project");

try {
  const { tarball, paths } = pack(scratch);
  for (const needed of [
    "dist/index.js",
    "dist/index.d.ts",
    "dist/cli/main.js",
    "dist/client/index.js",
    "dist/client/index.d.ts",
    "dist/shared/adapters/child-process.js",
    "dist/instance/heartbeat-thread.js",
    "dist/http/assets.js",
    "dist/testing/index.js",
    "dist/testing/index.d.ts",
    "CHANGELOG.md",
    "LICENSE",
    "README.md",
    "UPGRADING.md",
  ]) {
    if (!paths.includes(needed)) throw new Error(`The package lacks ${needed}.`);
  }
  run(path.join(bin, "publint"), [tarball, "--strict"], root);

  fs.mkdirSync(project);
  const page = path.join(root, "docs", "start", "tutorial.md");
  doTutorial({ page, folder: project, tarball, env: outsideOfNpm() });
  fs.writeFileSync(path.join(project, "smoke.ts"), SMOKE);
  // Our declarations too: what is missing among them would pass for anything.
  const strict = ["--strict", "--module", "nodenext", "--target", "es2023"];
  run(path.join(bin, "tsc"), [...strict, "--types", "", "smoke.ts"], project);
  run(process.execPath, ["smoke.js"], project);
  const help = run("npx", ["--no-install", "holdfast", "--help"], project);
  if (!/usage/i.test(help)) throw new Error(`holdfast --help printed no usage:\n${help}`);
  const { version } = JSON.parse(fs.readFileSync(path.join(root, "package.json"), "utf8"));
  const said = run("npx", ["--no-install", "holdfast", "--version"], project).trim();
  if (said !== version) throw new Error(`holdfast --version printed ${said}.`);
  run("npx", ["--no-install", "holdfast", "init", "new"], project);
  if (!fs.existsSync(path.join(project, "new", ".env.example")))
    throw new Error("holdfast init wrote no .env.example.");
  console.log(
    `✓ ${path.basename(tarball)}: ${paths.length} files, does the tutorial, runs a job, answers --help`,
  );
} catch (error) {
  console.error(`✗ ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
} finally {
  fs.rmSync(scratch, { recursive: true, force: true });
}
