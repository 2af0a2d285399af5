// Brings a fresh clone to the point where its programs can run: the right Node, the packages, the build.
// Needs nothing but Node and npm, and does nothing where nothing is missing.

import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build, isBuilt } from "./build.mjs";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));

/** @typedef {{ version?: string, optional?: boolean, link?: boolean }} LockedPackage */

/** Ends the process with an explanation where the surroundings do not allow to go on. */
export function ensureInstalled() {
  ensureNode();
  if (arePackagesInstalled()) return;
  console.log("Installing the packages that package-lock.json names (npm ci) …");
  // Asked for by name, because NODE_ENV=production or a user's npm settings may leave them out.
  // Errors only: what a package of a package thinks of this Node is nothing a reader can act on.
  const args = ["ci", "--include=dev", "--include=optional", "--no-audit", "--no-fund"];
  const code = npm([...args, "--loglevel=error"]);
  if (code !== 0) giveUp(`npm ci failed with exit code ${code}; what it printed says why.`);
}

/** @returns {boolean} whether build/ and dist/ now match the sources */
export function ensureBuilt() {
  if (isBuilt()) return true;
  console.log("Building …");
  return build();
}

/**
 * Redis for the tests of locks: from the system's package manager, where this user may use it.
 * @returns {string} why there is none, or nothing
 */
export function provideRedis() {
  return provideProgram("redis-server");
}

/**
 * A browser for the tests of the page, in the same way.
 * @returns {string} why there is none, or nothing
 */
export function provideChromium() {
  return process.env.HOLDFAST_TEST_CHROMIUM ? "" : provideProgram("chromium");
}

/** @param {string} name of the program and of its package */
function provideProgram(name) {
  const isThere = () => spawnSync(name, ["--version"]).status === 0;
  if (isThere()) return "";
  if (process.getuid?.() !== 0 || spawnSync("apt-get", ["--version"]).status !== 0)
    return `${name} was not found, and this user may not install it`;
  console.log(`Installing ${name} (apt-get) …`);
  const options = /** @type {const} */ ({
    stdio: "ignore",
    timeout: 180_000,
    // Nothing is started by the installation: the tests start their own.
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" },
  });
  spawnSync("apt-get", ["update", "-q"], options);
  spawnSync("apt-get", ["install", "-y", "-q", "--no-install-recommends", name], options);
  return isThere() ? "" : `${name} could not be installed by apt-get`;
}

function ensureNode() {
  const { engines } = readJson("package.json");
  const [needMajor = 0, needMinor = 0] = engines.node.replace(">=", "").split(".").map(Number);
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  if (major > needMajor || (major === needMajor && minor >= needMinor)) return;
  giveUp(`Node ${engines.node} is needed; this is ${process.versions.node}.`);
}

/** npm writes node_modules/.package-lock.json last: where it agrees with the lock, all is in place. */
function arePackagesInstalled() {
  const hidden = path.join("node_modules", ".package-lock.json");
  if (!fs.existsSync(path.join(root, hidden))) return false;
  /** @type {Record<string, LockedPackage>} */
  const wanted = readJson("package-lock.json").packages;
  /** @type {Record<string, LockedPackage>} */
  const present = readJson(hidden).packages;
  return Object.entries(wanted).every(([where, { version, optional }]) => {
    const found = present[where];
    return where === "" || (found ? found.version === version : optional === true);
  });
}

/** @param {string[]} args */
function npm(args) {
  const program = process.env.npm_execpath;
  const options = /** @type {const} */ ({ cwd: root, stdio: "inherit" });
  const ended =
    program && /\.c?js$/.test(program)
      ? spawnSync(process.execPath, [program, ...args], options)
      : spawnSync("npm", args, { ...options, shell: process.platform === "win32" });
  if (ended.error) giveUp(`npm could not be started: ${ended.error.message}`);
  return ended.status;
}

/** @param {string} name */
function readJson(name) {
  return JSON.parse(fs.readFileSync(path.join(root, name), "utf8"));
}

/**
 * @param {string} why
 * @returns {never}
 */
function giveUp(why) {
  console.error(why);
  process.exit(1);
}

if (process.argv[1] && fs.realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  ensureInstalled();
  process.exitCode = ensureBuilt() ? 0 : 1;
}
