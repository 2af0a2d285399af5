// Packs the package for publication, follows the tutorial with it in an empty folder, and checks the types, one job on
// SQLite from start to end, and the command line there.

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
// The thread is a file of its own, and the library must find it in any folder.
await holdfast.start({ worker: { heartbeat: "thread" } });
const { id } = await double.enqueue({ n: 21 });
await holdfast.runs.wait(id, { timeout: "5m" });
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
    "docs/README.md",
    "docs/guides/deploy.md",
    "docs/reference/api.md",
    "deploy/kubernetes/holdfast.yaml",
  ]) {
    if (!paths.includes(needed)) throw new Error(`The package lacks ${needed}.`);
  }
  const dangling = danglingLinks(paths);
  if (dangling.length > 0)
    throw new Error(`The package lacks what it links to: ${dangling.join(", ")}.`);
  run(path.join(bin, "publint"), [tarball, "--strict"], root);

  fs.mkdirSync(project);
  const page = path.join(root, "docs", "start", "tutorial.md");
  doTutorial({ page, folder: project, tarball, env: outsideOfNpm() });
  fs.writeFileSync(path.join(project, "smoke.ts"), SMOKE);
  // Checks our declarations too, because the compiler would treat a missing one as `any`.
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

/**
 * The links of the packed documents to files that are not packed. The README stands alone; other documents also name
 * pictures and source files, which are only in the repository.
 * @param {string[]} paths
 */
function danglingLinks(paths) {
  const holds = (/** @type {string} */ target) =>
    paths.some((each) => each === target || each.startsWith(`${target}/`));
  const onlyInRepository = /^(src|test|scripts|chaos|docs\/images)\b/;
  return paths
    .filter((file) => file.endsWith(".md"))
    .flatMap((file) =>
      [
        ...fs
          .readFileSync(path.join(root, file), "utf8")
          .matchAll(/\]\((?!https?:|mailto:|#)([^)#\s]+)/g),
      ]
        .map(([, target = ""]) =>
          path.posix.join(path.posix.dirname(file), target).replace(/\/$/, ""),
        )
        .filter((target) => !holds(target) && target !== ".")
        .filter((target) => file === "README.md" || !onlyInRepository.test(target))
        .map((target) => `${target} (in ${file})`),
    );
}
