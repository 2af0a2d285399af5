// Compiles src/ to build/, module by module, and bundles it to dist/, which is published: the dashboard, the types, and
// few files instead of hundreds, because every file makes a start slower. It builds in a separate folder and then
// swaps, so that a failed build leaves the old one and a running program never sees half of one.

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const dist = path.join(root, "dist");
const modules = path.join(root, "build");
// Beside the packages, because everything inside dist/ is published.
const stamp = path.join(root, "node_modules", ".holdfast-build");

/** The entries that users import. */
const PUBLIC = ["index", "http/index", "http/fastify", "client/index", "testing/index"];

/** Modules with a path of their own in dist/; all other modules go into shared files. */
const ENTRIES = [
  ...PUBLIC,
  // A program, or the file of a thread.
  "cli/main",
  "instance/heartbeat-thread",
  // Imported late: a process that began before the package was replaced still finds them.
  "http/assets",
  "shared/adapters/child-process",
  // Of the index, for who bundles a service that verifies, receives or locks, and nothing else.
  "client/receive",
  "locks/advisory",
  "locks/etcd",
  "locks/redis",
];

/** Returns whether build/ and dist/ match the current sources. */
export function isBuilt() {
  const needed = [path.join(modules, "index.js"), path.join(dist, "index.js"), stamp];
  if (!needed.every((file) => fs.existsSync(file))) return false;
  return fs.readFileSync(stamp, "utf8") === sourceHash();
}

/** @returns {boolean} whether the build succeeded; the compiler has said why not */
export function build() {
  const hash = sourceHash();
  const draft = { modules: `${modules}.${process.pid}.new`, dist: `${dist}.${process.pid}.new` };
  const compiler = path.join(root, "node_modules", "typescript", "bin", "tsc");
  const args = [compiler, "-p", "tsconfig.build.json", "--outDir", draft.modules];
  try {
    const compiled = spawnSync(process.execPath, args, { cwd: root, stdio: "inherit" });
    if (compiled.status !== 0) return false;
    if (!buildPage(draft.modules)) return false;
    bundle(draft.modules, draft.dist);
    replace(modules, draft.modules);
    replace(dist, draft.dist);
    fs.writeFileSync(stamp, hash);
    return true;
  } finally {
    for (const folder of Object.values(draft)) fs.rmSync(folder, { recursive: true, force: true });
  }
}

/** @param {string} folder @param {string} draft what takes its place */
function replace(folder, draft) {
  const old = `${folder}.${process.pid}.old`;
  if (fs.existsSync(folder)) fs.renameSync(folder, old);
  fs.renameSync(draft, folder);
  fs.rmSync(old, { recursive: true, force: true });
}

/**
 * Names stay as they are, for stack traces. Modules that look for neighbouring files rely on all files except the
 * index being one folder deep.
 * @param {string} from
 * @param {string} to
 */
function bundle(from, to) {
  // Only now: on a fresh clone this file is read before there are packages.
  const { buildSync } = createRequire(import.meta.url)("esbuild");
  buildSync({
    // File names depend on the paths: relative paths give the same names on every machine.
    absWorkingDir: from,
    entryPoints: ENTRIES.map((name) => `${name}.js`),
    outbase: ".",
    outdir: to,
    chunkNames: "shared/[name]-[hash]",
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node20.19",
    packages: "external",
    logLevel: "warning",
  });
  for (const name of typesOf(from)) {
    fs.mkdirSync(path.dirname(path.join(to, name)), { recursive: true });
    fs.copyFileSync(path.join(from, name), path.join(to, name));
  }
  fs.chmodSync(path.join(to, "cli", "main.js"), 0o755);
}

/**
 * Copies the declarations that users' compilers read, starting at the public entries.
 * @param {string} from
 */
function typesOf(from) {
  const names = new Set(PUBLIC.map((name) => `${name}.d.ts`));
  for (const name of names) {
    const text = fs.readFileSync(path.join(from, name), "utf8");
    for (const [, target] of text.matchAll(/(?:from |import\()"(\.[^"]+)\.js"/g))
      names.add(path.posix.join(path.posix.dirname(name), `${target}.d.ts`));
  }
  return names;
}

/**
 * Builds the page as static files, and as a module that the handler imports, which also works without a file system.
 * @param {string} draft
 */
function buildPage(draft) {
  const folder = path.join(draft, "dashboard");
  const vite = path.join(root, "node_modules", "vite", "bin", "vite.js");
  const args = [vite, "build", "dashboard", "--outDir", folder, "--logLevel", "warn"];
  const env = { ...process.env, NODE_ENV: "production" };
  const built = spawnSync(process.execPath, args, { cwd: root, stdio: "inherit", env });
  if (built.status !== 0) return false;
  const assets = path.join(folder, "assets");
  const packed = fs.readdirSync(assets).map((name) => {
    const type = TYPES[path.extname(name)];
    if (type === undefined)
      throw new Error(`What is ${name}? scripts/build.mjs knows no type for it.`);
    const content = fs.readFileSync(path.join(assets, name));
    return [name, { type, gzip: gzipSync(content, { level: 9 }).toString("base64") }];
  });
  const index = fs.readFileSync(path.join(folder, "index.html"), "utf8");
  fs.writeFileSync(
    path.join(draft, "http", "assets.js"),
    `// Written by the build from dashboard/.\nexport const INDEX = ${JSON.stringify(index)};\n` +
      `export const ASSETS = ${JSON.stringify(Object.fromEntries(packed), null, 1)};\n`,
  );
  return true;
}

/** @type {Record<string, string>} */
const TYPES = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** Compares contents, because a fresh clone or a change of branch gives every file a new time. */
function sourceHash() {
  const hash = createHash("sha256");
  const sources = fs
    .readdirSync(path.join(root, "src"), { recursive: true, withFileTypes: true })
    .concat(fs.readdirSync(path.join(root, "dashboard"), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile() && !entry.name.endsWith(".test.ts"))
    .map((entry) => path.join(entry.parentPath, entry.name))
    .sort();
  const settings = [
    "scripts/build.mjs",
    "tsconfig.json",
    "tsconfig.build.json",
    "package-lock.json",
  ];
  for (const file of [...settings.map((name) => path.join(root, name)), ...sources]) {
    hash
      .update(`${path.relative(root, file)}\0`)
      .update(fs.readFileSync(file))
      .update("\0");
  }
  return hash.digest("hex");
}

if (process.argv[1] && fs.realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  process.exitCode = build() ? 0 : 1;
}
