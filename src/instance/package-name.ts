// Finds the name of the application that an instance runs in: the name in the nearest package.json.

import path from "node:path";
import { NAME_LENGTH_MAX } from "../shared/names.js";

const found = new Map<string, string | null>();

/**
 * The name in the nearest package.json that has one: upwards from the folder of a command's configuration file, else from
 * that of the program that Node was started with, else from the working directory. A program inside of node_modules is
 * somebody else's (a test runner, a loader of TypeScript): then it is the working directory.
 */
export function packageName(params: {
  /** Of the configuration file. */
  readonly folder?: string | undefined;
  readonly program: string | undefined;
  readonly cwd: string;
}): string | null {
  const { folder, program, cwd } = params;
  if (folder !== undefined) return nameAbove(folder);
  const isOwn = program !== undefined && !program.split(path.sep).includes("node_modules");
  return (isOwn ? nameAbove(path.dirname(path.resolve(cwd, program))) : null) ?? nameAbove(cwd);
}

function nameAbove(folder: string): string | null {
  const known = found.get(folder);
  if (known !== undefined) return known;
  const parent = path.dirname(folder);
  const name = nameIn(folder) ?? (parent === folder ? null : nameAbove(parent));
  found.set(folder, name);
  return name;
}

/**
 * A file that cannot be read, or names nothing, says nothing; nor does a runtime without files. The module is not imported:
 * who bundles the library for such a runtime could not load it.
 */
function nameIn(folder: string): string | null {
  try {
    const { readFileSync } = process.getBuiltinModule("node:fs");
    const text = readFileSync(path.join(folder, "package.json"), "utf8");
    const { name } = JSON.parse(text) as { name?: unknown };
    const isName = typeof name === "string" && name !== "" && name.length <= NAME_LENGTH_MAX;
    return isName ? name : null;
  } catch {
    return null;
  }
}
