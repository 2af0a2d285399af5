// Prepares a fresh clone for its programs: checks Node, installs the packages, and builds. It needs only Node and npm,
// and does nothing if nothing is missing.

import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build, isBuilt } from "./build.mjs";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));

/** @typedef {{ version?: string, optional?: boolean, link?: boolean }} LockedPackage */

/** Ends the process with an explanation if this machine cannot run the programs. */
export function ensureInstalled() {
  ensureNode();
  if (arePackagesInstalled()) return;
  console.log("Installing the packages that package-lock.json names (npm ci) …");
  // Explicit flags, because NODE_ENV=production or a user's npm settings may leave these packages out.
  // Errors only: a reader cannot act on warnings of nested packages.
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
 * Installs Redis for the tests of locks with the system's package manager, if this user may use it.
 * @returns {Promise<string>} why there is none, or nothing
 */
export function provideRedis() {
  return provideProgram("redis-server");
}

/**
 * Installs etcd for the tests of locks in the same way.
 * @returns {Promise<string>} why there is none, or nothing
 */
export function provideEtcd() {
  return provideProgram("etcd", "etcd-server");
}

/**
 * Installs a browser for the tests of the page in the same way.
 * @returns {Promise<string>} why there is none, or nothing
 */
export async function provideChromium() {
  return process.env.HOLDFAST_TEST_CHROMIUM ? "" : provideProgram("chromium");
}

/**
 * @param {string} name of the program
 * @param {string} [debianPackage]
 */
async function provideProgram(name, debianPackage = name) {
  const isThere = async () => (await ended(name, ["--version"])) === 0;
  if (await isThere()) return "";
  if (process.getuid?.() !== 0 || (await ended("apt-get", ["--version"])) !== 0)
    return `${name} was not found, and this user may not install it`;
  console.log(`Installing ${name} (apt-get) …`);
  await ended("apt-get", ["update", "-q"]);
  await ended("apt-get", ["install", "-y", "-q", "--no-install-recommends", debianPackage]);
  return (await isThere()) ? "" : `${name} could not be installed by apt-get`;
}

/**
 * @param {string} program
 * @param {string[]} args
 * @returns {Promise<number | null>} its exit code, or null if it could not be run or took too long
 */
function ended(program, args) {
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      stdio: "ignore",
      timeout: 300_000,
      // The installation starts no service: the tests start their own.
      env: { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" },
    });
    child.once("error", () => resolve(null));
    child.once("exit", resolve);
  });
}

function ensureNode() {
  const { engines } = readJson("package.json");
  const [needMajor = 0, needMinor = 0] = engines.node.replace(">=", "").split(".").map(Number);
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  if (major > needMajor || (major === needMajor && minor >= needMinor)) return;
  giveUp(`Node ${engines.node} is needed; this is ${process.versions.node}.`);
}

/** npm writes node_modules/.package-lock.json last: if it agrees with the lock file, all packages are installed. */
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
