// Checks which parts of the published package are in a user's bundle: not more than was imported.

import path from "node:path";
import { buildSync } from "esbuild";
import { expect, test } from "vitest";

const ROOT = path.resolve(import.meta.dirname, "../..");

/** As services elsewhere have it: at an edge there may be neither sockets nor files. */
function bundled(name: string) {
  const { metafile, outputFiles } = buildSync({
    stdin: { contents: `export { ${name} } from "./dist/index.js";`, resolveDir: ROOT },
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    format: "esm",
    platform: "node",
    packages: "external",
    logLevel: "error",
  });
  const [output] = Object.values(metafile.outputs);
  const imported = new Set(output?.imports.map(({ path: module }) => module));
  return { imported: [...imported].sort(), bytes: outputFiles[0]?.contents.length ?? 0 };
}

const TAKEN_ALONE: [name: string, imported: string[], bytesMax: number][] = [
  ["verifyDispatch", ["node:crypto"], 10_000],
  ["createReceiver", ["node:crypto"], 80_000],
  ["PermanentError", [], 40_000],
  ["redisLocks", ["node:crypto"], 60_000],
  ["etcdLocks", [], 60_000],
  ["advisoryLock", [], 60_000],
];

test.for(TAKEN_ALONE)(
  "%s brings neither the engine nor a store into a bundle",
  ([name, imported, bytesMax]) => {
    const { bytes, ...rest } = bundled(name);
    expect(rest).toEqual({ imported });
    expect(bytes).toBeLessThan(bytesMax);
  },
);
