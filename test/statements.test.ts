// Renders every statement of the store into committed files, one for each noun and engine, so that reviews show changes of
// SQL as SQL. `npx vitest run --project unit test/statements.test.ts -u` writes them anew.

import { readdirSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { type Engine, render } from "../src/store/sql/dialect.js";
import { fillIn } from "../src/store/sql/template.js";

type Found = { readonly name: string; readonly text: string };

const ENGINES: readonly Engine[] = ["postgres", "sqlite"];
const IS_STATEMENT = /^\s*(?:--[^\n]*\n\s*)*(select|insert|update|delete|with|create|drop)\b/i;
const FOLDER = path.join(import.meta.dirname, "__snapshots__", "sql");

const STORE = path.join(import.meta.dirname, "..", "src", "store");

/**
 * `postgres/sql/locks.ts` is of the noun "locks" and of PostgreSQL alone. `alerts/alerts.ts` is of the noun "alerts",
 * `alerts/observations.ts` of "alerts-observations".
 */
function placeOf(file: string): { readonly noun: string; readonly engines: readonly Engine[] } {
  const parts = file.replace(/\.ts$/, "").split(path.sep);
  const engines = ENGINES.filter((engine) => parts.includes(engine));
  const named = parts.filter((part) => part !== "sql" && !ENGINES.includes(part as Engine));
  const noun = named.filter((part, at) => part !== named[at - 1]).join("-");
  return { noun, engines: engines.length === 0 ? ENGINES : engines };
}

/** The statements in a constant: a text, both engines' texts side by side, or a list or record of them. */
function statementsIn(name: string, value: unknown, engine: Engine): readonly Found[] {
  if (typeof value === "string") return IS_STATEMENT.test(value) ? [{ name, text: value }] : [];
  if (typeof value !== "object" || value === null) return [];
  if (engine in value) return statementsIn(name, value[engine as keyof typeof value], engine);
  return Object.entries(value).flatMap(([key, each]) =>
    statementsIn(`${name}.${key}`, each, engine),
  );
}

function rendered(text: string, engine: Engine): string {
  const now = engine === "postgres" ? "clock()" : ":now";
  const dialect = { name: (plain: string) => plain, now };
  return fillIn(render(text, engine), dialect).trim();
}

const files = new Map<string, Found[]>();
for (const file of readdirSync(STORE, { recursive: true, encoding: "utf8" }).sort()) {
  if (!file.endsWith(".ts") || file.endsWith(".test.ts")) continue;
  // The variable that the plugin of the unit tests in vitest.config.ts adds to each module.
  const { __statements = {} } = (await import(path.join(STORE, file))) as {
    readonly __statements?: Readonly<Record<string, unknown>>;
  };
  const { noun, engines } = placeOf(file);
  for (const engine of engines) {
    const found = Object.entries(__statements).flatMap(([name, value]) =>
      statementsIn(name, value, engine),
    );
    const name = `${noun}.${engine}.sql`;
    if (found.length > 0)
      files.set(name, [
        ...(files.get(name) ?? []),
        ...found.map((each) => ({ ...each, text: rendered(each.text, engine) })),
      ]);
  }
}

test("every statement is in a committed file, as it is sent", async () => {
  expect(files.size).toBeGreaterThan(40);
  for (const [name, found] of files) {
    const sorted = found.toSorted((a, b) => (a.name < b.name ? -1 : 1));
    const text = sorted.map((each) => `-- ${each.name}\n${each.text};\n`).join("\n");
    await expect(text).toMatchFileSnapshot(path.join(FOLDER, name));
  }
});

test("no file of statements is left over", () => {
  expect(readdirSync(FOLDER).sort()).toEqual([...files.keys()].sort());
});
