// Builds the documents as a site with VitePress for `npm run site`: into site/, with search, dark mode and llms.txt.
// `npm run site -- --serve` also shows it on this machine.

import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { addressOf } from "./address.mjs";
import { stageSite } from "./site/stage.mjs";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));

/**
 * Builds the whole site from scratch.
 * @param {{ out: string, folder: string }} params folder: for the pages as VitePress gets them, inside of the
 *   repository, so that VitePress finds its packages
 * @returns {{ file: string, page: string }[]} each document with its page
 */
export function buildSite({ out, folder }) {
  fs.rmSync(folder, { recursive: true, force: true });
  const pages = stageSite({ folder, address: addressOf() });
  vitepress("build", folder, "--outDir", out);
  return pages;
}

/** @param {string[]} args */
function vitepress(...args) {
  const program = path.join(root, "node_modules", ".bin", "vitepress");
  const ended = spawnSync(program, args, { cwd: root, stdio: "inherit" });
  if (ended.status !== 0) throw new Error(`vitepress ${args[0]} failed.`, { cause: ended.error });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const folder = path.join(root, ".holdfast", "site");
  const out = path.join(root, "site");
  const pages = buildSite({ out, folder });
  console.log(`✓ site/: ${pages.length} pages. \`npm run site -- --serve\` shows them.`);
  if (process.argv.includes("--serve")) vitepress("preview", folder, "--outDir", out);
}
