// Looks at every regular expression of the sources for the one mistake that stops a process: a text for which its work
// grows faster than the text.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { parseSync } from "@swc/core";
import { describe, expect, test } from "vitest";
import { redactText } from "../src/shared/redact.js";
import { type Pattern, readPattern } from "./support/pattern-steps.js";

type Literal = { readonly file: string; readonly source: string; readonly flags: string };

const isProduct = (file: string) => /\.tsx?$/.test(file) && !file.endsWith(".test.ts");

function literalsOf(file: string): Literal[] {
  const found: Literal[] = [];
  const visit = (node: unknown): void => {
    if (Array.isArray(node)) node.forEach(visit);
    if (typeof node !== "object" || node === null) return;
    const { type, pattern, flags } = node as { type?: string; pattern?: string; flags?: string };
    if (type === "RegExpLiteral") found.push({ file, source: `${pattern}`, flags: `${flags}` });
    else Object.values(node).forEach(visit);
  };
  const tsx = file.endsWith("x");
  visit(parseSync(readFileSync(file, "utf8"), { syntax: "typescript", tsx, target: "es2022" }));
  return found;
}

const files = execFileSync("git", ["ls-files", "src", "dashboard"], { encoding: "utf8" });
const literals = files.split("\n").filter(isProduct).flatMap(literalsOf);
const different = [...new Map(literals.map((one) => [`/${one.source}/${one.flags}`, one]))];

const NO_MATCH = ["", "\0", "\n", "!"];

/** At most so many of them, from beginning to end. */
function spread(texts: readonly string[], max: number): readonly string[] {
  const different = [...new Set(texts)];
  const step = Math.max(1, different.length / max);
  return Array.from(
    { length: Math.min(max, different.length) },
    (_, at) => different[Math.floor(at * step)] ?? "",
  );
}

/** The repeated part, and the parts before and after it. */
function* attacksOn({ alphabet, samples }: Pattern): Generator<(count: number) => string> {
  const starts = samples.flatMap((text) => [...text].map((_, at) => text.slice(0, at + 1)));
  const pieces = samples.flatMap((text) =>
    [...text].flatMap((_, at) => [2, 3, 4, 5, 8].map((length) => text.slice(at, at + length))),
  );
  const prefixes = new Set(["", ...alphabet, ...spread(starts, 100)]);
  const pairs = alphabet.flatMap((a) => alphabet.map((b) => a + b)).slice(0, 500);
  const pumps = new Set([...alphabet, ...pairs, ...spread(starts, 100), ...spread(pieces, 1_000)]);
  for (const pump of pumps) {
    const before = pump.length === 1 ? prefixes : [""];
    for (const prefix of before)
      for (const suffix of NO_MATCH)
        yield (count) => `${prefix}${pump.repeat(Math.ceil(count / pump.length))}${suffix}`;
  }
}

const STEPS_MAX = 2_000_000;

/** By how much the work grows when the text becomes twice as long: about 2 where it is linear, 4 where it is quadratic. */
function growth(pattern: Pattern, attack: (count: number) => string, length: number): number {
  const short = attack(length);
  const long = attack(2 * length);
  const steps = pattern.stepsFor(long, STEPS_MAX);
  if (steps >= STEPS_MAX) return Number.POSITIVE_INFINITY;
  const times = long.length / short.length;
  return steps / pattern.stepsFor(short, STEPS_MAX) / (times / 2);
}

/** A text that makes it slow, or null. The second look is longer than any bound that the sources give a repetition. */
function slowTextFor(pattern: Pattern): string | null {
  for (const attack of attacksOn(pattern)) {
    if (growth(pattern, attack, 40) < 2.3) continue;
    if (growth(pattern, attack, 400) < 2.8) continue;
    return attack(24);
  }
  return null;
}

describe("regular expressions of the sources", () => {
  test("the counter of steps notices quadratic and exponential patterns", () => {
    expect(slowTextFor(readPattern("\\s+$", ""))).not.toBeNull();
    expect(slowTextFor(readPattern("^(a+)+$", ""))).not.toBeNull();
    expect(
      slowTextFor(readPattern("(\\b[a-z][a-z0-9+.-]*:\\/\\/[^\\s:@/]*):\\S*@", "gi")),
    ).not.toBeNull();
    expect(slowTextFor(readPattern("^[a-z]{1,64}$", ""))).toBeNull();
  });

  test("the sources have patterns, and all of them are found", () => {
    expect(different.length).toBeGreaterThan(150);
  });

  test.each(different)(
    "the work of %s grows no faster than the text",
    (_, { source, flags, file }) => {
      const slow = slowTextFor(readPattern(source, flags));
      expect(slow, `${file}: the work grows faster than this text`).toBeNull();
    },
  );
});

/** The text of the report, which took twenty seconds at this length. */
test("a text of addresses without an end is redacted, and a text that is too long is cut", () => {
  const hostile = "a+".repeat(50_000);
  expect(redactText(hostile)).toBe(hostile);
  const schemes = `${"a://u:".repeat(50_000)} postgres://app:s3cret@db`;
  expect(redactText(schemes)).not.toContain("s3cret");
  expect(redactText("x".repeat(1_000_000)).length).toBeLessThan(300_000);
});
