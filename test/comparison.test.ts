// The comparison is fair only while every cell of its table has a source, a version and a date.

import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const ROOT = path.resolve(import.meta.dirname, "..");
const PAGE = readFileSync(path.join(ROOT, "docs/comparison.md"), "utf8");
const README = readFileSync(path.join(ROOT, "README.md"), "utf8");

/** The tables of the page side by side: one for Node.js, one for others. */
const TABLES = PAGE.split("\n## ").flatMap((part) => {
  const [header = [], , ...rows] = tableOf(part, "| | Holdfast |");
  return header.length === 0 ? [] : [{ header, rows }];
});
const PEERS = TABLES.flatMap(({ header }) => header.slice(2));

test("every cell of the comparison has the same mark among its sources, and says where it was found", () => {
  expect(PEERS.length).toBeGreaterThan(13);
  for (const peer of PEERS) {
    const { header, rows } = tableWith(peer);
    const column = header.indexOf(peer) - 2;
    expect(rows).toHaveLength(18);
    const sources = new Map(
      tableOf(sectionOf(peer), "| | | what").map(([n, ...cells]) => [n, cells] as const),
    );
    for (const [feature = "", ...marks] of rows) {
      const mark = marks[column + 1];
      const [shown, , where] = sources.get(feature.split(".")[0] ?? "") ?? [];
      expect(shown, `${peer}: ${feature}`).toBe(mark);
      if (mark !== "?") expect(where, `${peer}: ${feature}`).toBeTruthy();
    }
  }
});

test("every peer of the comparison has a version, and the day on which it was looked at", () => {
  for (const peer of PEERS) {
    const section = sectionOf(peer);
    expect(section.slice(`### ${peer} `.length), peer).toMatch(/^\d+\.\d+/);
    expect(section, peer).toMatch(/Looked at on \d+ \w+ 20\d\d/);
  }
});

test("the short table of README.md agrees with the full one", () => {
  const [short = [], , ...lines] = tableOf(README, "| | Holdfast |");
  for (const [feature, ...marks] of lines) {
    const wanted = short.slice(1).map((peer) => {
      const { header, rows } = tableWith(peer);
      const full = rows.find(([name]) => name?.replace(/^\d+\. /, "") === feature);
      return full?.[header.indexOf(peer)];
    });
    expect(marks, feature).toEqual(wanted);
  }
});

function tableWith(peer: string): { header: string[]; rows: string[][] } {
  const found = TABLES.find(({ header }) => header.includes(peer));
  if (!found) throw new Error(`No table has a column for ${peer}.`);
  return found;
}

/** The cells of the table that begins with this, line by line. */
function tableOf(text: string, beginning: string): string[][] {
  const from = text.indexOf(`\n${beginning}`);
  const lines = from < 0 ? [] : text.slice(from + 1).split("\n");
  const end = lines.findIndex((line) => !line.startsWith("|"));
  return lines.slice(0, end).map((line) =>
    line
      .slice(1, line.lastIndexOf("|"))
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim()),
  );
}

function sectionOf(peer: string): string {
  const from = PAGE.indexOf(`### ${peer} `);
  return PAGE.slice(from).split(/\n(?=### )/)[0] ?? "";
}
