// What users' code depends on, name by name: a change here is a change of the contract, and is meant.

import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { RunContext } from "../src/engine/context.js";
import { Holdfast } from "../src/engine/holdfast.js";

const ROOT = path.resolve(import.meta.dirname, "..");
const ENTRIES = Object.entries(readJson("package.json").exports as Record<string, unknown>)
  .filter(([, target]) => typeof target === "object")
  .map(([name, target]) => [name, sourceOf((target as { types: string }).types)] as const);

test.for(ENTRIES)("the names that %s exports", ([, file]) => {
  expect(exportedNames(readFileSync(path.join(ROOT, file), "utf8"))).toMatchSnapshot();
});

test("the members of a Holdfast and of what it holds", () => {
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

function exportedNames(text: string): readonly string[] {
  const lists = [...text.matchAll(/^export (type )?\{([^}]*)\}/gms)].flatMap(
    ([, isType, list = ""]) =>
      list
        .split(",")
        .map((each) => each.trim())
        .filter((each) => each !== "")
        .map((each) =>
          isType || each.startsWith("type ") ? `type ${each.replace(/^type /, "")}` : each,
        ),
  );
  const declared = [
    ...text.matchAll(/^export (?:async )?(type|interface|function|class|const) (\w+)/gm),
  ].map(([, kind = "", name]) =>
    ["type", "interface"].includes(kind) ? `type ${name}` : `${name}`,
  );
  return [...lists, ...declared].sort();
}

function sourceOf(types: string): string {
  return types.replace("./dist/", "src/").replace(".d.ts", ".ts");
}

function readJson(name: string): Record<string, unknown> {
  return JSON.parse(readFileSync(path.join(ROOT, name), "utf8")) as Record<string, unknown>;
}
