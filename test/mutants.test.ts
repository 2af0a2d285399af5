// The mutants of `npm run mutants` still fit the code they are made for. That each of them dies is
// shown by that script, which takes minutes.

import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
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
