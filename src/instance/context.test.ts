// Tests how an instance finds the name of its application in the nearest package.json.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { packageName } from "./context.js";

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
  expect(packageName({ folder: at("apps", "shop"), program, cwd: root })).toBe("@acme/shop");
});
