// docs/internals/systems.md: a row for each thing that the five documents ask for. No cell is empty, and every test that a row
// names is there, word for word.

import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const ROOT = path.resolve(import.meta.dirname, "..");
const DOCUMENTS = ["000", "001", "002", "003", "004"];

type Row = { readonly asked: string; readonly met: string; readonly shown: string };
type Named = { readonly file: string; readonly title: string };

const sections = readFileSync(path.join(ROOT, "docs/internals/systems.md"), "utf8")
  .split(/^## /m)
  .slice(1);

function rowsOf(section: string): Row[] {
  const lines = section.split("\n").filter((line) => line.startsWith("|"));
  return lines.slice(2).map((line) => {
    const [asked = "", met = "", shown = "", ...more] = line
      .slice(1, -1)
      .split("|")
      .map((cell) => cell.trim());
    expect(more, line).toEqual([]);
    return { asked, met, shown };
  });
}

/** A cell that has anything else than names of tests names one that does not exist. */
function testsIn(cell: string): Named[] {
  return cell.split("<br>").map((part) => {
    const [, file, title] = /^`([^`]+)` “(.+)”$/.exec(part) ?? [];
    return { file: file ?? part, title: title ?? part };
  });
}

const rows = sections.flatMap(rowsOf);
const texts = new Map<string, string>();

/** Its text, or nothing where there is no such file. */
function read(file: string): string {
  const known = texts.get(file);
  if (known !== undefined) return known;
  const place = path.join(ROOT, file);
  const text = existsSync(place) ? readFileSync(place, "utf8") : "";
  texts.set(file, text);
  return text;
}

test("each of the five documents has a table", () => {
  expect(sections.map((section) => section.slice(0, 3))).toEqual(DOCUMENTS);
  for (const section of sections) expect(rowsOf(section).length, section).toBeGreaterThan(20);
});

test("no cell is empty, and nothing is left for later", () => {
  const unfinished = /^(|-|–|\?|as above|todo|planned|later|tbd)\.?$/i;
  const wanting = rows.filter((row) => Object.values(row).some((cell) => unfinished.test(cell)));
  expect(wanting).toEqual([]);
});

test("each requirement is in one row of its document", () => {
  for (const section of sections) {
    const asked = rowsOf(section).map((row) => row.asked);
    expect(asked.filter((each, at) => asked.indexOf(each) !== at)).toEqual([]);
  }
});

test("every test that a row names exists", () => {
  const missing = rows
    .flatMap(({ shown }) => testsIn(shown))
    .filter(({ file, title }) => !['"', "'", "`"].some((q) => read(file).includes(q + title + q)));
  expect(missing).toEqual([]);
});

test("each changed requirement has its reason", () => {
  const changed = rows.filter(({ met }) => met.includes("**Changed:**"));
  expect(changed.length).toBeGreaterThanOrEqual(5);
  // A sentence for what it is, another one for why.
  expect(changed.filter(({ met }) => !/[^.]\. \S/.test(met))).toEqual([]);
});
