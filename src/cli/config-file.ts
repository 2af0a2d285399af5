// Finds and loads the configuration file, which default-exports the `Holdfast`, for all commands. Loading runs the user's code:
// an error in it becomes one message that names the file.

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";
import type { Holdfast } from "../holdfast.js";
import { prop, textProp } from "../shared/failure.js";
import { ImpossibleError } from "./failure.js";

/** The first one that exists wins. */
export const CONFIG_NAMES = [
  "holdfast.config.ts",
  "holdfast.config.mjs",
  "holdfast.config.js",
] as const;

/** The named file, or the one in this folder; null if none is named and none exists. */
export function findConfig(named: string | undefined, folder: string): string | null {
  if (named === undefined) {
    const found = CONFIG_NAMES.map((name) => path.join(folder, name)).find(existsSync);
    return found ?? null;
  }
  const file = path.resolve(folder, named);
  if (existsSync(file)) return file;
  throw new ImpossibleError(`There is no configuration file ${file}. Check the path.`);
}

export async function importConfig(file: string): Promise<Holdfast> {
  const shown = path.relative(process.cwd(), file) || file;
  if (/\.[cm]?ts$/.test(file)) await prepareTypeScript(file);
  const module = await import(pathToFileURL(file).href).catch((cause: unknown) => {
    if (isAboutFlags(cause)) throw new ImpossibleError(reason(cause), "START_REFUSED", { cause });
    const why =
      textProp(cause, "name") === "SyntaxError" ? syntaxError(cause, file) : reason(cause);
    throw new ImpossibleError(`${shown} could not be loaded.\n${why}`, "START_REFUSED", { cause });
  });
  const { default: found } = module as { default?: unknown };
  if (isHoldfast(found)) return found;
  throw new ImpossibleError(
    `${shown} must default-export its Holdfast, but its default export is ${kindOf(found)}. ` +
      'For example: const holdfast = new Holdfast({ database: "sqlite:app.db" }); export default holdfast;',
  );
}

/**
 * Node 22.18 and later strip types by themselves. If the project has `tsx`, it goes first: it also resolves `./jobs.js` to
 * `jobs.ts`, which Node does not.
 */
async function prepareTypeScript(file: string): Promise<void> {
  const program = findTsx(file);
  if (program !== null) {
    ((await import(pathToFileURL(program).href)) as { register(): unknown }).register();
    return;
  }
  const { typescript } = process.features as { typescript?: unknown };
  if (typescript) return;
  throw new ImpossibleError(
    `Node ${process.versions.node} cannot load ${path.basename(file)}. Do one of these: ` +
      "run `npm install --save-dev tsx` in its project; use Node 22.18 or later; " +
      "or rename it to holdfast.config.mjs and write plain JavaScript.",
  );
}

/** The `tsx` of the file's own project. Node resolves for another importer only with an experimental flag. */
function findTsx(file: string): string | null {
  const require = createRequire(file);
  try {
    const manifest = require.resolve("tsx/package.json");
    const { exports } = require(manifest) as { exports?: TsxExports };
    const entry = exports?.["./esm/api"]?.import?.default;
    return entry === undefined ? null : path.join(path.dirname(manifest), entry);
  } catch {
    return null;
  }
}

type TsxExports = { readonly "./esm/api"?: { readonly import?: { readonly default?: string } } };

/** Checks the shape, since the file may import another copy of this package. */
function isHoldfast(value: unknown): value is Holdfast {
  if (typeof value !== "object" || value === null) return false;
  const { start, stop, instanceId, runs } = value as Partial<Record<string, unknown>>;
  return (
    typeof start === "function" &&
    typeof stop === "function" &&
    typeof instanceId === "string" &&
    typeof runs === "object"
  );
}

function kindOf(value: unknown): string {
  if (value === undefined) return "missing";
  if (value === null) return "null";
  return typeof value === "object" ? "an object of another kind" : `a ${typeof value}`;
}

/** Whether only flags and variables are wrong: then the message need not name the file, whose constructor read them. */
function isAboutFlags(cause: unknown): boolean {
  const problems = prop(cause, "problems");
  if (!Array.isArray(problems) || problems.length === 0) return false;
  return problems.every((problem) =>
    /^(--|HOLDFAST_|flags$|<)/.test(textProp(problem, "field") ?? ""),
  );
}

/** The message alone for refusals of the library; other errors also get their place in the file. */
function reason(cause: unknown): string {
  const message = textProp(cause, "message") ?? String(cause);
  const { problems } = (cause ?? {}) as { problems?: unknown };
  if (Array.isArray(problems)) return message;
  const stack = textProp(cause, "stack") ?? "";
  const place = stack.split("\n").find((line) => /^\s+at /.test(line) && isUserCode(line));
  return place === undefined ? message : `${message}\n${place}`;
}

/** The place of a syntax error, which only Node's own report has. */
function syntaxError(cause: unknown, file: string): string {
  const checked = spawnSync(process.execPath, ["--check", file], { encoding: "utf8" });
  const report = checked.status === 0 ? (textProp(cause, "stack") ?? "") : checked.stderr;
  const lines = report.split("\n").filter((line) => !/^\s+at |^Node\.js v/.test(line));
  return lines.join("\n").trim();
}

/** Our folder as stack traces name it; the user's own folders may have any name. */
const OUR_FOLDER = new URL("..", import.meta.url).href;

function isUserCode(line: string): boolean {
  return !/node:|node_modules/.test(line) && !line.includes(OUR_FOLDER);
}
