// The project has no public address yet. Once it has one, package.json names it, and everything else takes it from there.

import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { addressOf } from "../scripts/address.mjs";

const ROOT = path.resolve(import.meta.dirname, "..");

test("package.json names the repository and the homepage, or neither of them", () => {
  const { repository, homepage } = JSON.parse(read("package.json"));
  expect(Boolean(repository?.url)).toBe(Boolean(homepage));
  if (homepage) expect(homepage).toMatch(/^https:\/\//);
});

test("an address of the repository gives one to read files at and one to edit them, and none gives none", () => {
  expect(addressOf({})).toBeNull();
  expect(addressOf({ repository: { url: "git+https://git.example/holdfast.git" } })).toEqual({
    source: "https://git.example/holdfast/blob/main",
    edit: "https://git.example/holdfast/edit/main",
  });
});

test("docs/package.md lists everything that depends on the address", () => {
  const scripts = readdirSync(path.join(ROOT, "scripts"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".mjs"))
    .map((name) => path.posix.join("scripts", name));
  const workflows = readdirSync(path.join(ROOT, ".github/workflows")).map((name) =>
    path.posix.join(".github/workflows", name),
  );
  const dependent = [
    ...scripts.filter((name) => /from "\.[./]*\/address\.mjs"/.test(read(name))),
    ...workflows.filter((name) => read(name).includes("repository.url")),
  ];
  const [, section = ""] = read("docs/package.md").split("## The public address\n");
  const listed = [...(section.split("\n## ")[0]?.matchAll(/^- `([^`]+)`/gm) ?? [])];
  expect(listed.map(([, name]) => name).sort()).toEqual(dependent.sort());
});

function read(name: string): string {
  return readFileSync(path.join(ROOT, name), "utf8");
}
