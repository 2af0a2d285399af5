// Packs the package into a folder for checks that use it from outside, and runs programs there without the variables
// of an outer npm.

import { spawnSync } from "node:child_process";
import path from "node:path";
import { fileURLToPath } from "node:url";

export const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));

/** The files that the package may contain; any other file is a mistake. */
const MAY_HOLD = [
  /^dist\/(alerts|cli|client|http|instance|locks|operations|remote|runs|schedules|shared|store|telemetry|testing|worker)\/.+\.d\.ts$/,
  /^dist\/(shared\/adapters\/child-process|cli\/main|instance\/heartbeat-thread|testing\/index)\.js$/,
  /^dist\/(client\/(index|receive)|http\/(assets|fastify|index)|locks\/(advisory|etcd|redis))\.js$/,
  /^dist\/shared\/[^/]+\.js$/,
  /^dist\/(index\.(js|d\.ts)|holdfast\.d\.ts)$/,
  /^(ARCHITECTURE|CHANGELOG|CONTRIBUTING|README|SECURITY|UPGRADING)\.md$/,
  // The documents as text, with the one picture of the README, and the files to copy from.
  /^(docs\/.+\.md|docs\/images\/overview-light\.png|bench\/(README|RESULTS)\.md)$/,
  /^(deploy|examples)\/.+$/,
  /^(\.env\.example|LICENSE|package\.json)$/,
];

/**
 * @param {string} folder
 * @returns {{ tarball: string, paths: string[], bytes: number, unpackedBytes: number }}
 */
export function pack(folder) {
  // The caller has built already; --ignore-scripts keeps npm from building again.
  const args = ["pack", "--ignore-scripts", "--json", "--pack-destination", folder];
  const [{ filename, files, size, unpackedSize }] = JSON.parse(run("npm", args, root));
  const paths = files.map((/** @type {{ path: string }} */ file) => file.path);
  const stray = paths.filter((/** @type {string} */ name) => !isWanted(name));
  if (stray.length > 0) throw new Error(`The package contains ${stray.join(", ")}.`);
  const tarball = path.join(folder, filename);
  return { tarball, paths, bytes: size, unpackedBytes: unpackedSize };
}

/** @param {string} name */
function isWanted(name) {
  return MAY_HOLD.some((pattern) => pattern.test(name)) && !/\.test\./.test(name);
}

/** Removes the variables of an outer npm, which would redirect an install to the repository. */
export function outsideOfNpm() {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^npm_/i.test(name) || /registry/i.test(name),
  );
  return Object.fromEntries(kept);
}

/**
 * @param {string} program
 * @param {string[]} args
 * @param {string} cwd
 * @returns {string} what it said
 */
export function run(program, args, cwd) {
  const ended = spawnSync(program, args, {
    cwd,
    env: outsideOfNpm(),
    encoding: "utf8",
    timeout: 900_000,
    maxBuffer: 64 * 1024 * 1024,
    shell: process.platform === "win32",
  });
  if (ended.status === 0) return ended.stdout;
  const why = ended.error?.message ?? `${ended.stdout}${ended.stderr}`;
  throw new Error(`${path.basename(program)} ${args.join(" ")} failed (${ended.status}):\n${why}`);
}

/** The first program of the README that says it runs. @param {string} text */
export function exampleOf(text) {
  const marked = text.indexOf("<!-- run -->");
  const block = marked < 0 ? null : /^```ts\n([\s\S]*?)^```$/m.exec(text.slice(marked));
  return block?.[1] ?? null;
}
