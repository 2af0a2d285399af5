// Checks the list of files that `npm test` leaves to `npm run test:all`: no file may be missing from both.

import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { REST, STAGES } from "../scripts/stages.mjs";

const root = path.resolve(import.meta.dirname, "..");

test("every file that waits for the whole run exists and belongs to the stage that names it", () => {
  for (const [project, files] of Object.entries(REST)) {
    expect(STAGES.map((stage) => stage.project)).toContain(project);
    for (const file of files) {
      expect(file).toMatch(new RegExp(`^test/${project}/[a-z-]+\\.test\\.ts$`));
      expect(existsSync(path.join(root, file)), file).toBe(true);
    }
  }
});

test("every project of vitest is a stage, and every stage has a name of its own", () => {
  const config = readFileSync(path.join(root, "vitest.config.ts"), "utf8");
  const projects = [...config.matchAll(/^ {10}name: "([a-z-]+)",$/gm)].map(([, name]) => name);
  expect(projects.length).toBeGreaterThan(8);
  expect(projects.sort()).toEqual(STAGES.flatMap(({ project }) => project ?? []).sort());
  expect(new Set(STAGES.map(({ name }) => name)).size).toBe(STAGES.length);
});
