// Prints how readable the tree is, in numbers: file counts, folder sizes, single-importer files, classes that
// one file constructs, and the walks of ARCHITECTURE.md. `--json` prints the same for programs.
// The numbers describe; they do not decide. A merge that makes a file worse is wrong even if a count improves.

import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));

/** The numbers of a good result; the last column of the table. */
const GOALS = {
  files: "about 250",
  "code lines": "about 50,000",
  "largest folders": "none over 25",
  "files under 40 code lines": "under 60",
  "files with one importer": "under 90",
  "classes constructed once, by one other file": "under 50",
  "walk: enqueue": "7",
  "walk: claim to settle": "16",
  "walk: tick": "14",
  "walk: HTTP call": "14",
  "walk: command": "16",
  "walk: lock": "7",
};

/** Listed once each by a file that gathers them: commands, routes, wire schemas, tables, the nouns of an engine. */
const ALIKE =
  /^src\/(cli\/commands|http\/(routes|wire)|store\/(postgres|sqlite|schema)|shared\/errors|testing\/simulator\/checkers)\//;
const ENGINE = /^src\/store\/(postgres|sqlite)\//;

/** @typedef {{ name: string, text: string, codeLines: number, imports: string[] }} SourceFile */

/** Measures the tree below `src`, without tests. */
export function measure() {
  const files = sourceFiles();
  const importers = importersOf(files);
  const folders = countBy(files.map(({ name }) => path.posix.dirname(name)));
  const single = files.filter(({ name }) => importers.get(name)?.size === 1);
  const once = constructedOnce(files);
  const largest = [...folders].sort((a, b) => b[1] - a[1]).slice(0, 5);
  const rows = {
    files: files.length,
    "code lines": sum(files.map(({ codeLines }) => codeLines)),
    "largest folders": largest.map(([folder, count]) => `${folder} ${count}`).join(", "),
    "files under 40 code lines": files.filter(({ codeLines }) => codeLines < 40).length,
    "files with one importer": single.length,
    "  of these one of many alike": single.filter(({ name }) => ALIKE.test(name)).length,
    "classes constructed once, by one other file": once.length,
    "  of these exceptions": once.filter(({ cls }) => cls.endsWith("Error")).length,
    "  of these the nouns of an engine": once.filter(({ name }) => ENGINE.test(name)).length,
  };
  const walks = readWalks();
  return { rows, walks, folders: Object.fromEntries(folders) };
}

/**
 * The walks that ARCHITECTURE.md describes: each section "Walk: …" names its files in order, in backticks.
 * @returns {{ name: string, files: string[], missing: string[] }[]}
 */
export function readWalks() {
  const page = fs.readFileSync(path.join(root, "ARCHITECTURE.md"), "utf8");
  return [...page.matchAll(/^## Walk: (.+)\n([\s\S]*?)(?=^## |(?![\s\S]))/gm)].map(
    ([, name = "", section = ""]) => {
      const named = [...section.matchAll(/`(src\/[\w./-]+\.ts)`/g)].map(([, file = ""]) => file);
      const files = [...new Set(named)];
      const missing = files.filter((file) => !fs.existsSync(path.join(root, file)));
      return { name, files, missing };
    },
  );
}

/** @returns {SourceFile[]} */
function sourceFiles() {
  return fs
    .readdirSync(path.join(root, "src"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"))
    .map((name) => path.posix.join("src", name.replaceAll(path.sep, "/")))
    .sort()
    .map((name) => {
      const text = fs.readFileSync(path.join(root, name), "utf8");
      return { name, text, codeLines: countCodeLines(text), imports: importsOf(name, text) };
    });
}

/**
 * Lines that are neither blank nor only a comment.
 * @param {string} text
 */
function countCodeLines(text) {
  let isInBlock = false;
  let count = 0;
  for (const line of text.split("\n").map((each) => each.trim())) {
    if (isInBlock) {
      if (line.includes("*/")) isInBlock = false;
      continue;
    }
    if (line === "" || line.startsWith("//")) continue;
    if (line.startsWith("/*")) {
      if (!line.includes("*/")) isInBlock = true;
      continue;
    }
    count += 1;
  }
  return count;
}

/**
 * @param {string} name
 * @param {string} text
 */
function importsOf(name, text) {
  return [...text.matchAll(/(?:from|import\()\s*"(\.[^"]+)\.js"/g)].map(([, target = ""]) =>
    path.posix.join(path.posix.dirname(name), `${target}.ts`),
  );
}

/** @param {SourceFile[]} files */
function importersOf(files) {
  /** @type {Map<string, Set<string>>} */
  const importers = new Map();
  for (const { name, imports } of files)
    for (const target of imports) {
      const known = importers.get(target) ?? new Set();
      importers.set(target, known.add(name));
    }
  return importers;
}

/** @param {SourceFile[]} files */
function constructedOnce(files) {
  const classes = files.flatMap(({ name, text }) =>
    [...text.matchAll(/^export class (\w+)/gm)].map(([, cls = ""]) => ({ name, cls })),
  );
  return classes.filter(({ name, cls }) => {
    const construction = new RegExp(`new ${cls}\\b[(<]`, "g");
    const sites = files.flatMap((file) =>
      [...file.text.matchAll(construction)].map(() => file.name),
    );
    return sites.length === 1 && sites[0] !== name;
  });
}

/** @param {string[]} values */
function countBy(values) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
}

/** @param {number[]} values */
function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}

function main() {
  const { rows, walks, folders } = measure();
  if (process.argv.includes("--json")) {
    console.log(JSON.stringify({ rows, walks, folders }, null, 2));
    return;
  }
  /** @type {Record<string, string | number>} */
  const table = { ...rows };
  for (const { name, files } of walks) table[`walk: ${name}`] = files.length;
  const width = Math.max(...Object.keys(table).map((key) => key.length));
  for (const [key, value] of Object.entries(table)) {
    const goal = /** @type {Record<string, string>} */ (GOALS)[key];
    console.log(`${key.padEnd(width)}  ${value}${goal ? `  (goal: ${goal})` : ""}`);
  }
  for (const { name, files, missing } of walks) {
    console.log(`\n${name}`);
    for (const file of files) console.log(`  ${file}${missing.includes(file) ? "  MISSING" : ""}`);
  }
  if (walks.some(({ missing }) => missing.length > 0)) process.exitCode = 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main();
