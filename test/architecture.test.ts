// ARCHITECTURE.md against the tree: its walks, its rooms and its table of changes name files that exist.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { readWalks } from "../scripts/house.mjs";

const ROOT = path.resolve(import.meta.dirname, "..");
const PAGE = readFileSync(path.join(ROOT, "ARCHITECTURE.md"), "utf8");
const WALKS = ["enqueue", "claim to settle", "tick", "HTTP call", "command", "lock"];

test("ARCHITECTURE.md has the six walks, and none names a file that is gone", () => {
  const walks = readWalks();
  expect(walks.map(({ name }) => name)).toEqual(WALKS);
  expect(walks.flatMap(({ missing }) => missing)).toEqual([]);
  for (const { name, files } of walks) expect(files.length, name).toBeGreaterThan(3);
});

test("every file and folder that ARCHITECTURE.md names exists", () => {
  const named = [...PAGE.matchAll(/`((?:src|docs|test|dashboard|chaos|bench)\/[\w./-]*)`/g)];
  const missing = named
    .map(([, name = ""]) => name)
    .filter((name) => !existsSync(path.join(ROOT, name)));
  expect(named.length).toBeGreaterThan(50);
  expect(missing).toEqual([]);
});

test("every room of the source has its row", () => {
  const rooms = readdirSync(path.join(ROOT, "src"), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => `src/${entry.name}`);
  const rows = PAGE.slice(PAGE.indexOf("## The rooms"), PAGE.indexOf("## Walk: enqueue"));
  expect(rooms.filter((room) => !rows.includes(`\`${room}\``))).toEqual([]);
});

test("every row of the table of changes names where to begin and a check", () => {
  const from = PAGE.indexOf("| you want to change |");
  const [, , ...rows] = PAGE.slice(from, PAGE.indexOf("\n\n", from)).split("\n");
  expect(rows.length).toBeGreaterThan(10);
  for (const line of rows) expect(line).toMatch(/^\| [^|]+ \| [^|]*`[^|]+ \| [^|]+ \|$/);
});
