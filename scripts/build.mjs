// Compiles src/ and builds dashboard/ to dist/. The new output is made aside and then put in place as a whole,
// so that a failed build leaves the old one and a running program never meets half of one.

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const dist = path.join(root, "dist");
// Beside the packages, because everything inside dist/ is published.
const stamp = path.join(root, "node_modules", ".holdfast-build");

/** Says whether dist/ was made from the sources as they are now. */
export function isBuilt() {
  if (!fs.existsSync(path.join(dist, "index.js")) || !fs.existsSync(stamp)) return false;
  return fs.readFileSync(stamp, "utf8") === sourceHash();
}

/** @returns {boolean} whether the build succeeded; the compiler has said why not */
export function build() {
  const hash = sourceHash();
  const draft = path.join(root, `dist.${process.pid}.new`);
  const old = path.join(root, `dist.${process.pid}.old`);
  const compiler = path.join(root, "node_modules", "typescript", "bin", "tsc");
  const args = [compiler, "-p", "tsconfig.build.json", "--outDir", draft];
  try {
    const compiled = spawnSync(process.execPath, args, { cwd: root, stdio: "inherit" });
    if (compiled.status !== 0) return false;
    if (!buildPage(draft)) return false;
    const program = path.join(draft, "cli", "main.js");
    if (fs.existsSync(program)) fs.chmodSync(program, 0o755);
    if (fs.existsSync(dist)) fs.renameSync(dist, old);
    fs.renameSync(draft, dist);
    fs.writeFileSync(stamp, hash);
    return true;
  } finally {
    fs.rmSync(draft, { recursive: true, force: true });
    fs.rmSync(old, { recursive: true, force: true });
  }
}

/**
 * The page as static files, and packed as a module that the handler imports: that runs also where there
 * is no file system.
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

/** By content, because a fresh clone or a change of branch gives every file a new time. */
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
