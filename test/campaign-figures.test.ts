// Compares the figures of the campaign in docs/reliability.md with its record.

import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { missing, SOMETIMES } from "../src/testing/simulator/index.js";

const ROOT = path.resolve(import.meta.dirname, "..");
const page = readFileSync(path.join(ROOT, "docs/reliability.md"), "utf8");
const record = JSON.parse(
  readFileSync(path.join(ROOT, "test/simulation/campaign.json"), "utf8"),
) as {
  readonly done: number;
  readonly virtualMs: number;
  readonly faults: number;
  readonly operations: number;
  readonly calls: number;
  readonly counters: Readonly<Record<string, number>>;
  readonly commits: Readonly<Record<string, number>>;
  readonly violations: readonly unknown[];
};

/** States that the recorded campaign could not count yet: durable waits came after it. The next campaign removes the list. */
const SINCE: readonly string[] = [
  ...["run-suspended", "run-resumed", "step-replayed", "step-repeated", "signal-received"],
  ...["signal-timed-out", "signal-pruned", "call-failed", "lost-answer-of-suspend"],
];

const inWords = (count: number) => count.toLocaleString("en-US");

test("no seed of the campaign breaks a promise, and every rare state was reached", () => {
  expect(record.violations).toEqual([]);
  const missed = missing({ seeds: record.done, counters: record.counters });
  expect(missed.filter((name) => !SINCE.includes(name))).toEqual([]);
});

test("every seed was run by a commit that the record names", () => {
  const counted = Object.values(record.commits).reduce((sum, count) => sum + count, 0);
  expect(counted).toBe(record.done);
});

test("the page has the campaign's figures", () => {
  const { done, virtualMs, faults, operations, calls } = record;
  for (const figure of [
    `${inWords(done)} seeds`,
    `${inWords(Math.round(virtualMs / 3_600_000))} virtual hours`,
    `${inWords(faults)} faults`,
    `${inWords(operations)} operations`,
    `${inWords(calls)} store calls`,
  ])
    expect(page.replaceAll(/\s+/g, " ")).toContain(figure);
});

test("the page says how often each rare state was reached", () => {
  const rows = Object.entries(SOMETIMES)
    .filter(([name]) => !SINCE.includes(name))
    .map(([name, words]) => `| ${words} | ${inWords(record.counters[name] ?? 0)} |`);
  expect(rows.filter((row) => !page.includes(row))).toEqual([]);
});
