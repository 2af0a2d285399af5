// Words that readers stumbled over do not come back, neither in the documents and the dashboard nor in comments, help
// texts and error messages: each has a technical term.

import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const ROOT = path.resolve(import.meta.dirname, "..");
const WORDS =
  /\b(told|heard of|so long|so many|whoever|made up for|see to|look after|elsewhere|the house)\b/gi;
/** Their rows are the words of the code, which other tests compare. */
const FROM_CODE = /^docs\/reference\/(api|errors|events|metrics|http)\.md$/;
/** A value of GET /api/me. */
const WIRE = /"elsewhere"/g;
const CODE = /`[^`\n]*`/g;
/** A line of a comment, in TypeScript or in SQL. */
const COMMENT = /^\s*(\/\/|\/?\*|--)\s/;

test("the documents have none of the words that readers stumbled over", () => {
  const pages = ["README.md", ...filesIn("docs", ".md")].filter(
    // Quotes requirements in their own words.
    (name) => name !== "docs/internals/systems.md",
  );
  expect(pages.length).toBeGreaterThan(60);
  const found = pages.flatMap((name) =>
    findings(name, (line) => !(FROM_CODE.test(name) && line.startsWith("| `"))),
  );
  expect(found).toEqual([]);
});

test("the dashboard has none of the words that stopped readers", () => {
  const files = [...filesIn("dashboard", ".tsx"), ...filesIn("dashboard", ".ts")];
  expect(files.length).toBeGreaterThan(80);
  expect([...files, "dashboard/index.html"].flatMap((name) => findings(name))).toEqual([]);
});

test("comments, help texts and messages have none of the words that stopped readers", () => {
  const files = filesIn("src", ".ts").filter((name) => !name.endsWith(".test.ts"));
  expect(files.length).toBeGreaterThan(300);
  const found = files.flatMap((name) => findings(name, (line) => COMMENT.test(line)));
  const inTexts = files
    .filter((name) => /^src\/(cli|shared|telemetry)\//.test(name))
    .flatMap((name) => findings(name, (line) => /["`]/.test(line) && !line.includes("import ")));
  expect([...found, ...inTexts]).toEqual([]);
});

/** Each of the words outside of code blocks and inline code, as `file:line: word`. */
function findings(name: string, isProse: (line: string) => boolean = () => true): string[] {
  const isPage = name.endsWith(".md");
  let isCode = false;
  return readFileSync(path.join(ROOT, name), "utf8")
    .split("\n")
    .flatMap((line, index) => {
      if (isPage && /^ *```/.test(line)) isCode = !isCode;
      if (isCode || !isProse(line)) return [];
      const prose = isPage ? line.replaceAll(CODE, "") : line.replaceAll(WIRE, "");
      return [...prose.matchAll(WORDS)].map(([word]) => `${name}:${index + 1}: ${word}`);
    });
}

function filesIn(folder: string, ending: string): string[] {
  return readdirSync(path.join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(ending))
    .map((name) => path.posix.join(folder, name));
}
