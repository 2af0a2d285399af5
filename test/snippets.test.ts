// Every program that a document shows compiles against the types of the package, those marked
// `<!-- run -->` run to their end, and data can be read. What snippets take for granted is in
// docs/names-in-snippets.d.ts; a program that is shown from a file (`<!-- file: … -->`) is compiled and run
// where that file is.

import { execFile, spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse as parseYaml } from "yaml";
import { createTestHoldfast } from "../src/testing/index.js";

type Snippet = { name: string; marks: string; text: string };

const ROOT = path.resolve(import.meta.dirname, "..");
// Inside the repository, so that packages resolve as they do for everything else here.
const SCRATCH = path.join(ROOT, ".holdfast", `snippets-${process.pid}`);
const SOURCES = {
  holdfast: "index.ts",
  "holdfast/http": "http/index.ts",
  "holdfast/fastify": "http/fastify.ts",
  "holdfast/client": "client/index.ts",
  "holdfast/testing": "testing/index.ts",
};

const PAGES = [
  ...["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "UPGRADING.md", "SECURITY.md"],
  ...readdirSync(path.join(ROOT, "docs"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => path.posix.join("docs", name))
    .sort(),
];
const SNIPPETS = PAGES.flatMap(snippetsOf).filter(({ marks }) => !marks.includes("file:"));

beforeAll(() => {
  mkdirSync(SCRATCH, { recursive: true });
  for (const { name, text } of SNIPPETS)
    writeFileSync(path.join(SCRATCH, name), `${text}\nexport {};\n`);
  const paths = Object.entries(SOURCES).flatMap(([name, file]) =>
    [name, `npm:${name}`].map((each) => [each, [`../../src/${file}`]]),
  );
  writeFileSync(
    path.join(SCRATCH, "tsconfig.json"),
    JSON.stringify({
      extends: "../../tsconfig.json",
      compilerOptions: {
        paths: Object.fromEntries(paths),
        rootDir: ROOT,
        exactOptionalPropertyTypes: false,
      },
      include: ["*.ts", "../../docs/*.d.ts"],
    }),
  );
});

afterAll(() => rmSync(SCRATCH, { recursive: true, force: true }));

test("every program in the documents compiles", () => {
  expect(SNIPPETS.length).toBeGreaterThan(50);
  const ended = spawnSync(program("tsc"), ["-p", SCRATCH], { cwd: ROOT, encoding: "utf8" });
  // The stage `types` reports mistakes in the source, under its own stricter options.
  const wrong = ended.stdout
    .split("\n")
    .filter((line) => line.startsWith(path.relative(ROOT, SCRATCH)) || line.startsWith("docs/"))
    .map((line) => line.slice(line.lastIndexOf("/", line.indexOf("(")) + 1));
  expect(wrong).toEqual([]);
  expect(ended.error).toBeUndefined();
});

test("every program in the documents that says so runs to its end", async () => {
  // The snippet of README.md runs beside the examples, with the package as built.
  const runnable = SNIPPETS.filter(
    ({ marks, name }) => /\brun\b/.test(marks) && !/^README/.test(name),
  );
  expect(runnable.length).toBeGreaterThan(2);
  const ended = runnable.map(async ({ name }) => {
    const cwd = path.join(SCRATCH, name.replace(".ts", ""));
    mkdirSync(cwd);
    const args = ["--tsconfig", path.join(SCRATCH, "tsconfig.json"), path.join(SCRATCH, name)];
    await promisify(execFile)(program("tsx"), args, { cwd, timeout: 60_000 });
  });
  await Promise.all(ended);
});

test("every piece of JSON and YAML in the documents can be read", () => {
  const blocks = PAGES.flatMap((page) =>
    [...read(page).matchAll(/^```(json|yaml)\n(.*?)^```$/gms)].map(([, kind, text = ""]) => {
      return { page, parse: () => (kind === "json" ? JSON.parse(text) : parseYaml(text)) };
    }),
  );
  expect(blocks.length).toBeGreaterThan(5);
  for (const { page, parse } of blocks) expect(parse, page).not.toThrow();
});

test("every question that the documents ask in SQL has an answer", async () => {
  const kit = await createTestHoldfast({
    setup(holdfast) {
      holdfast.schedule("nightly", holdfast.job("report", { run: () => "done" }), {
        cron: "@daily",
      });
    },
  });
  try {
    await kit.start();
    await kit.advance("2d");
    for (const { page, text } of questions())
      for (const one of text
        .replaceAll("holdfast.", "")
        .split(";")
        .filter((each) => each.trim()))
        expect(() => kit.database.prepare(one).all(), `${page}: ${one}`).not.toThrow();
  } finally {
    await kit.close();
  }
});

/** The blocks marked `<!-- sql -->`: written for PostgreSQL, and the same on SQLite but for the schema. */
function questions(): { page: string; text: string }[] {
  const found = PAGES.flatMap((page) =>
    [...read(page).matchAll(/^<!-- sql -->\n```sql\n(.*?)^```$/gms)].map(([, text = ""]) => ({
      page,
      text,
    })),
  );
  expect(found.length).toBeGreaterThan(5);
  return found;
}

function read(page: string): string {
  return readFileSync(path.join(ROOT, page), "utf8");
}

function snippetsOf(page: string): Snippet[] {
  const blocks = read(page).matchAll(/((?:^<!-- [^\n]*-->\n)*)^```(?:ts|js)\n(.*?)^```$/gms);
  return [...blocks].map(([, marks = "", body = ""], index) => {
    const stem = page.replace(/\.md$/, "").replaceAll("/", "-");
    return { name: `${stem}-${index + 1}.ts`, marks, text: body };
  });
}

function program(name: string): string {
  return path.join(ROOT, "node_modules", ".bin", name);
}
