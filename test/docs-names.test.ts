// Checks that every command with its options, every route and every metric that the documents and the files to copy
// mention exists. docs.test.ts compares the reference pages word for word.

import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { ROUTES } from "../src/http/wire/contract.js";
import type { Route } from "../src/http/wire/schemas.js";
import { METRICS } from "../src/telemetry/metric-names.js";

const ROOT = path.resolve(import.meta.dirname, "..");
const PAGES = [
  ...["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "UPGRADING.md"],
  ...["docs", "deploy", "examples"].flatMap(filesIn),
].map((name) => ({ name, text: readFileSync(path.join(ROOT, name), "utf8") }));

/** At the beginning, after a variable or the times of a crontab, or by way of npm. */
const CALL = /(?:^|=\S+ |\* |&& |\bnpx |\.bin\/)holdfast +([a-z-].*)$/;

test("every command line that a document shows is one that the program knows, with options that it has", () => {
  const known = commands();
  const shown = PAGES.flatMap(({ name, text }) =>
    commandLines(text).map((line) => ({ name, line })),
  );
  expect(shown.length).toBeGreaterThan(150);
  const wrong = shown.flatMap(({ name, line }) => {
    const { command, options } = parsed(line, known);
    const has = known.get(command);
    if (has === undefined) return [`${name}: ${line}: there is no such command`];
    return options
      .filter((option) => !has.has(option))
      .map((option) => `${name}: ${line}: ${option} is no option of ${command}`);
  });
  expect(wrong).toEqual([]);
});

test("every route that a document names is one of the contract", () => {
  const known = (Object.values(ROUTES) as Route[]).map(({ method, path: where }) => ({
    method,
    pattern: new RegExp(`^${where.replaceAll(/[:{]\w+\}?/g, "[^/]+")}$`),
  }));
  const named = PAGES.flatMap(({ name, text }) =>
    [
      ...text.matchAll(
        /\b(GET|POST|PUT|DELETE) +'?(\/(?:api|metrics|healthz|readyz)[^\s`'"?,;)]*)/g,
      ),
    ].map(([found, method, where = ""]) => ({
      found: `${name}: ${found}`,
      isKnown: known.some((route) => route.method === method && route.pattern.test(where)),
    })),
  );
  expect(named.length).toBeGreaterThan(50);
  expect(named.filter(({ isKnown }) => !isKnown)).toEqual([]);
});

test("every metric that a document, a dashboard or a rule names is one that is counted", () => {
  const known = Object.keys(METRICS).flatMap((name) => [
    name,
    ...["_bucket", "_sum", "_count"].map((part) => name + part),
  ]);
  const named = PAGES.flatMap(({ name, text }) =>
    [...text.matchAll(/\bholdfast_[a-z_]+_(?:total|seconds|ratio|depth|bytes|info|bucket)\b/g)].map(
      ([metric]) => ({ name, metric }),
    ),
  );
  expect(named.length).toBeGreaterThan(50);
  expect(named.filter(({ metric }) => !known.includes(metric))).toEqual([]);
});

/** Each command of the help pages, with the options that it takes. */
function commands(): Map<string, Set<string>> {
  const file = "test/cli/__snapshots__/help.test.ts.snap";
  const help = readFileSync(path.join(ROOT, file), "utf8");
  return new Map(
    help.split(/^"?Usage: holdfast/m).map((page) => {
      const name = /^ ?([a-z ]*?)(?= ?[[<\n])/.exec(page)?.[1]?.trim() ?? "";
      const options = [...page.matchAll(/^ {2}(-.+?)(?: {2}|$)/gm)].flatMap(
        ([, words = ""]) => words.match(/(?<![\w-])--?[a-z-]+/gi) ?? [],
      );
      return [name, new Set(options)];
    }),
  );
}

/** The words after `holdfast` in blocks of a shell and in inline code. */
function commandLines(text: string): string[] {
  const blocks = [...text.matchAll(/^```(?:sh|crontab|yaml)\n(.*?)^```$/gms)].flatMap(
    ([, block = ""]) => block.replaceAll("\\\n", " ").split("\n"),
  );
  const inline = [...text.replaceAll(/^```.*?^```$/gms, "").matchAll(/`([^`\n]+)`/g)].map(
    ([, code = ""]) => code,
  );
  return [...blocks, ...inline].flatMap((line) => {
    const called = CALL.exec(line.replace(/(^|\s)#.*$/, ""));
    return called?.[1] === undefined ? [] : [called[1]];
  });
}

function parsed(line: string, known: Map<string, Set<string>>) {
  // The words after ` -- ` belong to the program that is run; quoted text belongs to no command.
  const [own = ""] = line.replaceAll(/'[^']*'|"[^"]*"/g, "…").split(/ -- |[|>&;]/);
  const words = own
    .trim()
    .replace(/["\]}]+$/, "")
    .split(/\s+/);
  const [noun = "", verb = ""] = words;
  const isGroup = [...known.keys()].some((name) => name.startsWith(`${noun} `));
  // "schedules …" and "locks list｜stats" speak of several at once.
  const command = isGroup && /^[a-z]/.test(verb) ? `${noun} ${verb.split("｜")[0]}` : noun;
  const options = words
    .filter((word) => /^--?[a-z]/i.test(word))
    .map((word) => word.split("=")[0] ?? "");
  return { command, options };
}

function filesIn(folder: string): string[] {
  return readdirSync(path.join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => /\.(md|ya?ml|json|service|timer|sh)$/.test(name))
    .map((name) => path.posix.join(folder, name))
    .filter((name) => !name.includes("node_modules"))
    .sort();
}
