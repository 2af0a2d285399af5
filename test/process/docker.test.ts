// The Dockerfile, command by command, in an empty folder, as a normal user: what is installed starts,
// answers its own health check, and stops in good order when told.

import { type SpawnOptions, spawn } from "node:child_process";
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, test } from "vitest";
import { until } from "../support/until.js";

const ROOT = path.resolve(import.meta.dirname, "../..");
const DOCKERFILE = readFileSync(path.join(ROOT, "deploy/Dockerfile"), "utf8").replaceAll(
  "\\\n",
  " ",
);
const USER = process.getuid?.() === 0 ? { uid: 1000, gid: 1000 } : {};

/** The commands of one instruction, in order; lists as lists, texts as texts for a shell. */
function commandsOf(instruction: string): (string | string[])[] {
  return DOCKERFILE.split("\n")
    .filter((line) => new RegExp(`^\\s*${instruction} `).test(line))
    .map((line) => line.slice(line.indexOf("CMD [") > 0 ? line.indexOf("CMD [") : 0))
    .map((line) => line.trim().replace(/^(RUN|CMD|HEALTHCHECK.*CMD) /, ""))
    .map((text) => (text.startsWith("[") ? (JSON.parse(text) as string[]) : text));
}

function run(command: string | string[], options: SpawnOptions) {
  const [program = "", ...args] = typeof command === "string" ? ["sh", "-c", command] : command;
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], ...USER, ...options });
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (chunk) => {
      said += chunk;
    });
  const code = new Promise<number | null>((resolve) => child.once("exit", resolve));
  return { child, code, said: () => said };
}

test("its commands install, start, answer the health check and stop, as a normal user", async () => {
  expect(DOCKERFILE).toMatch(/^USER node$/m);
  expect(DOCKERFILE.match(/^FROM /gm)).toHaveLength(2);
  const folder = mkdtempSync(path.join(tmpdir(), "holdfast-docker-"));
  const port = await freePort();
  application(folder);
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    NODE_ENV: "production",
    npm_config_offline: "true",
    npm_config_cache: path.join(folder, ".npm"),
    HOLDFAST_HOST: "127.0.0.1",
    HOLDFAST_PORT: String(port),
    HOLDFAST_ADMIN_SECRET: "an-admin-secret-of-letters",
    HOLDFAST_LOG_LEVEL: "info",
  };
  const inFolder = { cwd: folder, env };
  const runs = commandsOf("RUN");
  expect(runs).toEqual(["npm ci --omit=dev"]);
  for (const command of runs) {
    const installed = run(command, inFolder);
    expect([await installed.code, installed.said()]).toEqual([0, expect.any(String)]);
  }
  const [start] = commandsOf("CMD").slice(-1);
  const [health] = commandsOf("HEALTHCHECK");
  const started = run(start as string[], inFolder);
  try {
    const check = (health as string[]).map((each) => each.replaceAll("4780", String(port)));
    await until("the health check succeeds", async () => {
      if (started.child.exitCode !== null) throw new Error(started.said());
      return (await run(check, inFolder).code) === 0;
    });
  } finally {
    started.child.kill("SIGTERM");
  }
  expect([await started.code, started.said()]).toEqual([
    0,
    expect.stringContaining("0 finished, 0 handed back, 0 abandoned"),
  ]);
  rmSync(folder, { recursive: true, force: true });
});

/** The files that users have beside the Dockerfile; the package is this one, as built. */
function application(folder: string): void {
  // Without its program, which is not this user's to mark as one; the image starts it by its path.
  const { name, version, exports, type } = JSON.parse(
    readFileSync(path.join(ROOT, "package.json"), "utf8"),
  );
  const dependencies = { holdfast: "file:holdfast" };
  mkdirSync(path.join(folder, "holdfast"));
  cpSync(path.join(ROOT, "LICENSE"), path.join(folder, "holdfast/LICENSE"));
  symlinkSync(path.join(ROOT, "dist"), path.join(folder, "holdfast/dist"));
  const files = {
    "holdfast/package.json": JSON.stringify({ name, version, exports, type }),
    "package.json": JSON.stringify({ name: "app", version: "1.0.0", type: "module", dependencies }),
    "package-lock.json": JSON.stringify({
      ...{ name: "app", version: "1.0.0", lockfileVersion: 3, requires: true },
      packages: {
        "": { name: "app", version: "1.0.0", dependencies },
        holdfast: { version },
        "node_modules/holdfast": { resolved: "holdfast", link: true },
      },
    }),
    "holdfast.config.mjs": `import { Holdfast } from "holdfast";
const holdfast = new Holdfast({ database: "sqlite:app.db" });
holdfast.job("hello", { run: () => "hello" });
export default holdfast;
`,
  };
  for (const [file, text] of Object.entries(files)) writeFileSync(path.join(folder, file), text);
  if (USER.uid === undefined) return;
  for (const each of ["", "holdfast", ...Object.keys(files)])
    chownSync(path.join(folder, each), USER.uid, USER.gid);
  chmodSync(folder, 0o755);
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" ? (address?.port ?? 0) : 0));
    });
  });
}
