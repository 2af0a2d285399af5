// Lists the names that users' code depends on: a change here is a change of the contract, and must be meant.

import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { Holdfast } from "../src/holdfast.js";
import { RunContext } from "../src/worker/handler/context.js";
import { exportedBy } from "./support/api-members.js";

const ROOT = path.resolve(import.meta.dirname, "..");
const ENTRIES = Object.entries(readJson("package.json").exports as Record<string, unknown>)
  .filter(([, target]) => typeof target === "object")
  .map(([name, target]) => [name, sourceOf((target as { types: string }).types)] as const);

test.for(ENTRIES)("the names that %s exports", ([, file]) => {
  expect(exportedNames(file)).toMatchSnapshot();
});

test("the members of a Holdfast and of its parts", () => {
  const holdfast = new Holdfast({ database: "sqlite::memory:" });
  const members: Record<string, readonly string[]> = { holdfast: membersOf(holdfast) };
  for (const name of Object.keys(holdfast).sort()) {
    const part = (holdfast as unknown as Record<string, unknown>)[name];
    if (isPart(part)) members[`holdfast.${name}`] = membersOf(part);
  }
  expect(members).toMatchSnapshot();
});

test("the members of a job and of a handler's context", () => {
  const holdfast = new Holdfast({ database: "sqlite::memory:" });
  expect({
    job: membersOf(holdfast.job("any", {})),
    ctx: namesOf(RunContext.prototype),
  }).toMatchSnapshot();
});

function isPart(value: unknown): value is object {
  return typeof value === "object" && value !== null && value.constructor !== Object;
}

/** Own data members and what its class has, without what begins privately. */
function membersOf(value: object): readonly string[] {
  const names = new Set([...Object.keys(value), ...namesOf(Object.getPrototypeOf(value))]);
  return [...names].sort();
}

function namesOf(prototype: object): readonly string[] {
  return Object.getOwnPropertyNames(prototype)
    .filter((name) => name !== "constructor")
    .sort();
}

function exportedNames(file: string): readonly string[] {
  const { values, types } = exportedBy(file);
  return [...values, ...types.map((name) => `type ${name}`)].sort();
}

function sourceOf(types: string): string {
  return types.replace("./dist/", "src/").replace(".d.ts", ".ts");
}

function readJson(name: string): Record<string, unknown> {
  return JSON.parse(readFileSync(path.join(ROOT, name), "utf8")) as Record<string, unknown>;
}
