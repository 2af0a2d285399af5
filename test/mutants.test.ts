// The mutants of `npm run mutants` still fit the code they are made for. That each of them dies is
// shown by that script, which takes minutes.

import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { parseSync } from "vite";
import { expect, test } from "vitest";
import { MUTANTS, mutated, occurrences } from "./mutants/list.mjs";
import { SUITES } from "./mutants/suites.mjs";

const ROOT = path.resolve(import.meta.dirname, "..");
const textOf = (file: string) => readFileSync(path.join(ROOT, file), "utf8");

test("the text of every mutant occurs in its file exactly once", () => {
  const wrong = MUTANTS.map(({ name, file, find }) => ({
    name,
    file,
    times: occurrences(textOf(file), find),
  })).filter(({ times }) => times !== 1);
  expect(wrong).toEqual([]);
});

test("every mutant changes the product's code, and nothing else", () => {
  for (const mutant of MUTANTS) {
    expect(mutant.file, mutant.name).toMatch(
      /^src\/(alerts|http|instance|locks|operations|remote|runs|schedules|shared|store|telemetry|worker)\/.+(?<!\.test)\.ts$/,
    );
    const text = textOf(mutant.file);
    expect(mutated(text, mutant), mutant.name).not.toBe(text);
  }
});

test("every mutant uses names that its file or the language knows, so that it dies of its bug", () => {
  const namesOf = new Map<string, ReadonlySet<string>>();
  const unknown = MUTANTS.flatMap((mutant) => {
    const text = textOf(mutant.file);
    const known = namesOf.get(mutant.file) ?? namesIn(text);
    namesOf.set(mutant.file, known);
    return [...namesIn(mutated(text, mutant))]
      .filter((name) => !known.has(name) && !(name in globalThis))
      .map((name) => `${mutant.name}: ${name}`);
  });
  expect(unknown).toEqual([]);
});

test("names of mutants are told apart, and each has a suite that must kill it", () => {
  expect(new Set(MUTANTS.map(({ name }) => name)).size).toBe(MUTANTS.length);
  expect(MUTANTS.length).toBeGreaterThanOrEqual(22);
  for (const { name, suites } of MUTANTS) {
    expect(suites.length, name).toBeGreaterThan(0);
    for (const suite of suites) expect(Object.keys(SUITES)).toContain(suite);
  }
});

test("every suite has files, and they exist", () => {
  for (const [name, { args }] of Object.entries(SUITES)) {
    const files = args.filter((arg) => arg.endsWith(".test.ts"));
    expect(files.length, name).toBeGreaterThan(0);
    for (const file of files) expect(existsSync(path.join(ROOT, file)), file).toBe(true);
  }
});

test("a text that occurs twice is refused", () => {
  const twice = { ...(MUTANTS[0] as (typeof MUTANTS)[number]), find: "a", replace: "$&" };
  expect(() => mutated("banana", twice)).toThrow("occurs 3 times, not once");
  expect(mutated("bx a", twice)).toBe("bx $&");
});

type Node = { readonly type: string; readonly computed?: boolean; readonly [key: string]: unknown };

/** The names that a program refers to or declares, but for those of members. */
function namesIn(text: string): ReadonlySet<string> {
  const names = new Set<string>();
  const visit = (node: Node): void => {
    if (node.type === "Identifier") names.add(String(node.name));
    for (const [key, value] of Object.entries(node)) {
      if ((key === "property" || key === "key") && node.computed === false) continue;
      for (const child of [value].flat()) if (isNode(child)) visit(child);
    }
  };
  visit(parseSync("file.ts", text).program as unknown as Node);
  return names;
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value;
}
