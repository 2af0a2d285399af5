// Reads the project's public address for everything that depends on it. Fill it in at one place: `repository.url` and
// `homepage` of package.json. Without it, nothing invents one: the site has no edit links, and names files without a link.

import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));

/** @typedef {{ source: string, edit: string }} Address where a file can be read, and where it can be edited */

/**
 * Returns the address of the repository, or null while package.json has none.
 * @param {{ repository?: { url?: string } }} [manifest]
 * @returns {Address | null}
 */
export function addressOf(manifest = readManifest()) {
  const url = manifest.repository?.url?.replace(/^git\+/, "").replace(/\.git$/, "");
  return url ? { source: `${url}/blob/main`, edit: `${url}/edit/main` } : null;
}

function readManifest() {
  return JSON.parse(fs.readFileSync(path.join(root, "package.json"), "utf8"));
}
