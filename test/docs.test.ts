// Keeps the documents true: codes, variables, options and links are compared with the code.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { STAGES } from "../scripts/stages.mjs";
import { ROUTES } from "../src/http/wire/contract.js";
import type { Route } from "../src/http/wire/schemas.js";
import { ERROR_CODES } from "../src/shared/errors/codes.js";
import { VARIABLES } from "../src/shared/variables.js";
import { CREATE_SCHEMA } from "../src/store/schema/schema.js";
import { LINES } from "../src/telemetry/log.js";
import { METRICS } from "../src/telemetry/metric-names.js";

const ROOT = path.resolve(import.meta.dirname, "..");
const PAGES = [
  ...["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"],
  ...["SECURITY.md", "UPGRADING.md"],
  ...filesIn("docs", ".md"),
];

test("docs/reference/errors.md has every code, in the words of the code", () => {
  const rows = [...read("docs/reference/errors.md").matchAll(/^\| `([A-Z_]+)` \| (.+?) \|/gm)];
  expect(rows.map(([, code, description]) => ({ code, description }))).toEqual(ERROR_CODES);
});

test("docs/internals/tables.md has every table that is created, and no other", () => {
  const created = Object.values(CREATE_SCHEMA).flatMap((sql) =>
    [...sql.matchAll(/create table (?:if not exists )?\{(\w+)\}/g)].map(([, name = ""]) => name),
  );
  const known = new Set(created.filter((name) => !name.endsWith("_rest")));
  const rows = [...read("docs/internals/tables.md").matchAll(/^\| (`.+?`) \| /gm)];
  const shown = rows.flatMap(([, names = ""]) =>
    names.split(", ").map((name) => name.slice(1, -1)),
  );
  expect(shown.sort()).toEqual([...known].sort());
});

test("docs/reference/events.md has every event, with the level, the words and the fields of the code", () => {
  const rows = [
    ...read("docs/reference/events.md").matchAll(/^\| `([a-z_.]+)` \| (\w+) \| (.+) \| (.*) \|$/gm),
  ];
  const shown = rows.map(([, name, level, words, fields = ""]) => [name, level, words, fields]);
  const known = Object.entries(LINES).map(([name, [level, words]]) => {
    return [name, level, words, fieldsOf(name).join(", ")];
  });
  expect(shown).toEqual(known);
});

test("docs/reference/metrics.md has every metric, with the type, the labels and the words of the code", () => {
  const rows = [
    ...read("docs/reference/metrics.md").matchAll(
      /^\| `(holdfast_\w+)` \| (\w+) \| (.*?) \| (\w+) \| (.+) \|$/gm,
    ),
  ].map(([, ...cells]) => cells);
  const known = Object.entries(METRICS).map(([name, { type, labels, of, help }]) => {
    return [name, type, labels.map((label) => `\`${label}\``).join(", "), of, help];
  });
  expect(rows).toEqual(known);
});

test("docs/reference/http.md has every route, with the scope and the words of the contract", () => {
  const rows = [
    ...read("docs/reference/http.md").matchAll(/^\| `([A-Z]+)` \| `(\S+)` \| (.+?) \| (.+) \|$/gm),
  ].map(([, ...cells]) => cells.join(" | "));
  const known = (Object.values(ROUTES) as Route[]).map(
    ({ method, path: where, scope, isCallback, summary }) =>
      [method, where, isCallback ? `${scope} or callback token` : scope, summary].join(" | "),
  );
  expect(rows.sort()).toEqual(known.sort());
});

test("docs/reference/views.md has every column of every view, in its order", () => {
  const snapshot = read("test/engine/__snapshots__/views.test.ts.snap");
  const known = new Map(
    [...snapshot.matchAll(/^ {2}"(v_\w+)": "(.+)",$/gm)].map(([, view = "", columns = ""]) => [
      view,
      columns.split(" "),
    ]),
  );
  const shown = new Map(
    read("docs/reference/views.md")
      .split(/^## /m)
      .slice(1)
      .map((section) => [
        section.split("\n")[0] ?? "",
        [...section.matchAll(/^\| `(\w+)` \|/gm)].map(([, column]) => column ?? ""),
      ]),
  );
  // Two of them begin with the columns of another one, which the page says instead.
  const begins = new Map([
    // A column that came later stands at the end of each view.
    ["v_running_runs", known.get("v_runs")?.indexOf("whole_duration_ms")],
    ["v_stale_runs", known.get("v_running_runs")?.length],
  ]);
  expect([...shown.keys()].sort()).toEqual([...known.keys()].sort());
  for (const [view, columns] of known)
    expect(shown.get(view), view).toEqual(columns.slice(begins.get(view) ?? 0));
});

test("every schedule that a step of the workflow compares with is declared, and every step can run", () => {
  const workflow = read("deploy/github-actions-cron.yml");
  const declared = [...workflow.matchAll(/^ {4}- cron: "(.+)"/gm)].map(([, cron]) => cron);
  const compared = [...workflow.matchAll(/github\.event\.schedule == '(.+?)'/g)].map(
    ([, cron]) => cron,
  );
  expect(declared.length).toBeGreaterThan(1);
  expect([...new Set(compared)].sort()).toEqual([...declared].sort());
});

test("every variable that the code reads is in .env.example and in the reference", () => {
  const source = filesIn("src", ".ts").filter((name) => !name.endsWith(".test.ts"));
  const used = variables(source.map(read).join("\n"));
  expect(used).toEqual([...VARIABLES].sort());
  expect(variables(read(".env.example"))).toEqual(used);
  expect(variables(read("docs/reference/configuration.md"))).toEqual(used);
});

test("docs/reference/configuration.md has every option of an enqueue", () => {
  const [, members = ""] =
    /^const ENQUEUE_MEMBERS = \[(.*?)\];$/ms.exec(read("src/runs/enqueue.ts")) ?? [];
  const [, section = ""] =
    /^## `job\.enqueue\(.*?$(.*?)^## /ms.exec(read("docs/reference/configuration.md")) ?? [];
  const rows = [...section.matchAll(/^\| (`.+?`) \|/gm)].map(([, names = ""]) => names);
  const known = [...members.matchAll(/"(\w+)"/g)].map(([, name]) => `\`${name}\``);
  expect(known.length).toBeGreaterThan(0);
  expect(rows.join(", ").split(", ").sort()).toEqual(known.sort());
});

test("every command and option of the help pages is in docs/reference/cli.md", () => {
  const help = read("test/cli/__snapshots__/help.test.ts.snap");
  const page = read("docs/reference/cli.md");
  const options = new Set(
    [...help.matchAll(/^ {2}(?:-\w, )?(--[a-z-]+)/gm)].map(([, name]) => name),
  );
  const commands = [...help.matchAll(/^Usage: holdfast ([a-z ]+?)(?: \[| <|$)/gm)].map(
    ([, name]) => name,
  );
  expect(options.size).toBeGreaterThan(15);
  const missing = [...options, ...commands].filter(
    (name) => name !== "runs" && !page.includes(`${name}`),
  );
  expect(missing).toEqual([]);
});

test("every program that a document shows is the file that it names", () => {
  const shown = PAGES.flatMap((page) =>
    [...read(page).matchAll(/^<!-- file: (\S+) -->\n```\w+\n(.*?)^```$/gms)].map(
      ([, file = "", text]) => ({ page, file, isSame: text === read(file) }),
    ),
  );
  expect(shown.length).toBeGreaterThan(3);
  expect(shown.filter(({ isSame }) => !isSame)).toEqual([]);
});

test("CONTRIBUTING.md names every stage of the tests, and every folder that tests are in", () => {
  const page = read("CONTRIBUTING.md");
  const stages = STAGES.map(({ name }) => name);
  expect(page).toContain(`(\`${stages.join(" ")}\`)`);
  const folders = filesIn("test", ".test.ts").map((name) => path.posix.dirname(name));
  const missing = [...new Set(folders)].filter((name) => !page.includes(`\`${name}`));
  expect(missing).toEqual([]);
});

test("each point of a list and each row of a table has a line of its own", () => {
  const merged = PAGES.flatMap((page) => {
    const text = read(page).replaceAll(/^ *```[\s\S]*?^ *```$/gm, "");
    let columns = 0;
    return text.split("\n").flatMap((line) => {
      const pipes = line.startsWith("|") ? (line.match(/(?<!\\)\|/g) ?? []).length : 0;
      const isOtherRow = columns > 0 && pipes > 0 && pipes !== columns;
      columns = pipes === 0 ? 0 : columns || pipes;
      const isMerged = /[.:;)?!`] (?:-|[2-9]\.)(?: (?=\*\*|[A-Z`[])|$)/.test(line) && pipes === 0;
      return isOtherRow || isMerged ? [`${page}: ${line}`] : [];
    });
  });
  expect(merged).toEqual([]);
});

test("every link between the documents leads somewhere", () => {
  const broken = PAGES.flatMap((page) =>
    [...read(page).matchAll(/\]\((?!https?:|#)([^)#]+)/g)]
      .map(([, target = ""]) => path.join(path.dirname(page), target))
      .filter((target) => !existsSync(path.join(ROOT, target)))
      .map((target) => `${page}: ${target}`),
  );
  expect(broken).toEqual([]);
});

test("docs/README.md leads to every document", () => {
  const index = read("docs/README.md");
  const pages = filesIn("docs", ".md").filter((page) => page !== "docs/README.md");
  const missing = pages.filter((page) => !index.includes(`](${page.replace("docs/", "")})`));
  expect(missing).toEqual([]);
});

test("every document that the code points to exists", () => {
  const named = filesIn("src", ".ts").flatMap((name) =>
    [...read(name).matchAll(/docs\/[\w/-]+\.md/g)].map(([target]) => target),
  );
  expect(named.filter((target) => !existsSync(path.join(ROOT, target)))).toEqual([]);
});

/** The members of an event's type, those that it shares with others first. */
function fieldsOf(event: string): string[] {
  const source = read("src/telemetry/log.ts");
  const members = (text = "") => [...text.matchAll(/(\w+\??):/g)].map(([, name]) => `\`${name}\``);
  const [, type = ""] =
    new RegExp(`^  "${event}":\\s+([^;]*?(?:\\{.*?\\})?);$`, "ms").exec(source) ?? [];
  const shared = ["RunFields", "TickFields", "LockFields", "AlertFields"]
    .filter((name) => type.includes(name))
    .map((name) => new RegExp(`^type ${name} = \\{(.*?)\\};$`, "ms").exec(source)?.[1]);
  return [
    ...members(shared[0]?.replaceAll(/\/\*\*.*?\*\//gs, "")),
    ...members(/\{.*\}/s.exec(type)?.[0]),
  ];
}

function read(name: string): string {
  return readFileSync(path.join(ROOT, name), "utf8");
}

function filesIn(folder: string, ending: string): string[] {
  return readdirSync(path.join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(ending))
    .map((name) => path.posix.join(folder, name))
    .sort();
}

function variables(text: string): string[] {
  return [...new Set(text.match(/\bHOLDFAST_[A-Z_]+\b/g))].sort();
}
