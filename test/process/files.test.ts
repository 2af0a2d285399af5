// Proves with real processes that a stop closes the SQLite files of the main thread and of the heartbeat's thread,
// and that `holdfast start` ends by itself when its file is gone.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test as base, describe, expect } from "vitest";

const ROOT = path.join(import.meta.dirname, "..", "..");
const PACKAGE = path.join(ROOT, "dist", "index.js");
const CLI = path.join(ROOT, "dist", "cli", "main.js");

const test = base.extend<{ folder: string }>({
  folder: async ({ task: _ }, use) => {
    const folder = mkdtempSync(path.join(tmpdir(), "holdfast-files-"));
    await use(folder);
    rmSync(folder, { recursive: true, force: true });
  },
});

const STOPPED = `
  import { readdirSync, readlinkSync } from "node:fs";
  import { Holdfast } from ${JSON.stringify(PACKAGE)};
  const file = process.argv[1];
  const open = () => readdirSync("/proc/self/fd").flatMap((number) => {
    try {
      const target = readlinkSync("/proc/self/fd/" + number);
      return target.startsWith(file) ? [target] : [];
    } catch { return []; }
  });
  const holdfast = new Holdfast({ database: "sqlite:" + file });
  const study = holdfast.job("study", { run: () => "done" });
  await holdfast.start({ worker: { heartbeat: "thread" } });
  await holdfast.runs.wait((await study.enqueue({})).id);
  const before = open().length;
  await holdfast.stop();
  console.log(JSON.stringify({ before, after: open() }));
`;

// Only Linux shows a process its open files as a folder.
describe.skipIf(process.platform !== "linux")(
  "files of a process that goes on after a stop",
  () => {
    test("a stop closes the database's files, those of the heartbeat's thread as well", async ({
      folder,
    }) => {
      const child = spawn(
        process.execPath,
        ["--input-type=module", "-e", STOPPED, path.join(folder, "app.db")],
        { stdio: ["ignore", "pipe", "inherit"] },
      );
      let said = "";
      child.stdout.on("data", (chunk) => {
        said += chunk;
      });
      await once(child, "close");
      const { before, after } = JSON.parse(said) as { before: number; after: string[] };
      // The file and its -wal file for each of the two threads, and one -shm file for both.
      expect(before).toBeGreaterThanOrEqual(5);
      expect(after).toEqual([]);
    });
  },
);

test("holdfast start ends with exit code 3 and says why when its file is deleted", async ({
  folder,
}) => {
  const config = path.join(folder, "holdfast.config.mjs");
  writeFileSync(
    config,
    `import { Holdfast } from ${JSON.stringify(PACKAGE)};
     export default new Holdfast({ database: "sqlite:app.db", poll: "50ms" });`,
  );
  const child = spawn(process.execPath, [CLI, "start", "--port", "0"], {
    cwd: folder,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let errors = "";
  child.stderr.on("data", (chunk) => {
    errors += chunk;
  });
  const exit = once(child, "exit");
  const isListening = new Promise<void>((resolve) => {
    let said = "";
    child.stdout.on("data", (chunk) => {
      said += chunk;
      if (said.includes("Listening")) resolve();
    });
  });
  await Promise.race([isListening, exit]);
  rmSync(path.join(folder, "app.db"));
  expect((await exit)[0]).toBe(3);
  expect(errors).toContain("was deleted or moved while it was open");
});
