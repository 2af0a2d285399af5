// Tests how an instance finds the name of its application in the nearest package.json, and that of its program.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { packageName, programName } from "./context.js";

let root: string;
const at = (...parts: string[]) => path.join(root, ...parts);

function put(folder: string, content: unknown): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, "package.json"), JSON.stringify(content));
}

beforeAll(() => {
  root = mkdtempSync(path.join(tmpdir(), "holdfast-package-"));
  put(root, { name: "whole", private: true });
  put(at("apps", "shop"), { name: "@acme/shop" });
  put(at("apps", "shop", "dist"), { type: "module" });
  put(at("node_modules", "runner"), { name: "runner" });
});
afterAll(() => rmSync(root, { recursive: true }));

test("an application has the name of the nearest package.json above its program", () => {
  const program = at("apps", "shop", "dist", "main.js");
  expect(packageName({ program, cwd: root })).toBe("@acme/shop");
  expect(packageName({ program: "apps/shop/dist/main.js", cwd: root })).toBe("@acme/shop");
  expect(packageName({ program: at("scripts", "main.js"), cwd: "/" })).toBe("whole");
});

test("for a program inside node_modules, or none, the search begins at the working directory", () => {
  const program = at("node_modules", "runner", "cli.js");
  expect(packageName({ program, cwd: at("apps", "shop") })).toBe("@acme/shop");
  expect(packageName({ program: undefined, cwd: at("apps") })).toBe("whole");
});

test("for a command the search begins at the folder of its configuration file", () => {
  const program = at("node_modules", ".bin", "holdfast");
  expect(packageName({ file: at("apps", "shop", "holdfast.config.ts"), program, cwd: root })).toBe(
    "@acme/shop",
  );
});

test("a program is named by its path in its package, wherever the package is installed", () => {
  const program = at("apps", "shop", "dist", "web.js");
  expect(programName({ program, cwd: "/" })).toBe("dist/web.js");
  expect(programName({ program: "dist/web.js", cwd: at("apps", "shop") })).toBe("dist/web.js");
  expect(programName({ program: at("scripts", "nightly.js"), cwd: "/" })).toBe(
    "scripts/nightly.js",
  );
});

test("a command is named by its configuration file, and a tool in node_modules has no name", () => {
  const program = at("node_modules", "runner", "cli.js");
  const file = at("apps", "shop", "worker.config.mjs");
  expect(programName({ file, program, cwd: root })).toBe("worker.config.mjs");
  expect(programName({ program, cwd: root })).toBeNull();
  expect(programName({ program: undefined, cwd: root })).toBeNull();
});
