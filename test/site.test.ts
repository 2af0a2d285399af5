// The site is built from the documents themselves; here it is built once, and every link in it followed.

import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildSite } from "../scripts/site.mjs";

const OUT = mkdtempSync(path.join(os.tmpdir(), "holdfast-site-"));
let pages: { file: string; url: string }[] = [];

beforeAll(() => {
  pages = buildSite({ out: OUT });
});

afterAll(() => rmSync(OUT, { recursive: true, force: true }));

test("every document that the index names is a page", () => {
  const index = readFileSync(path.resolve(import.meta.dirname, "../docs/README.md"), "utf8");
  const named = [...index.matchAll(/^- \[.+?\]\(([^)#]+\.md)/gm)].map(([, target = ""]) =>
    path.posix.join("docs", target),
  );
  expect(named.length).toBeGreaterThan(50);
  const files = pages.map(({ file }) => file);
  expect(named.filter((file) => !files.includes(file))).toEqual([]);
});

test("a link to a folder leads to its README, as on GitHub", () => {
  for (const name of ["market-studies", "report-schedules", "reconciliation"])
    expect(read("systems.html")).toContain(`href="examples/${name}.html"`);
});

test("no two documents are one page", () => {
  expect(new Set(pages.map(({ url }) => url)).size).toBe(pages.length);
});

test("every link, picture, style and script of the site is there, and so is every place within a page", () => {
  const ids = new Map(pages.map(({ url }) => [url, idsOf(read(url))]));
  const broken = pages.flatMap(({ url }) =>
    [...read(url).matchAll(/(?:href|src|srcset)="([^"]+)"/g)]
      .map(([, target = ""]) => target.replaceAll("&amp;", "&"))
      .filter((target) => !/^(https?|mailto):/.test(target))
      .filter((target) => !leads(url, target, ids))
      .map((target) => `${url}: ${target}`),
  );
  expect(broken).toEqual([]);
});

test("a page carries no script and no style of its own, so that its policy can refuse them", () => {
  const own = pages.filter(({ url }) => /<script>|<style|\sstyle="|\son\w+="/.test(read(url)));
  expect(own).toEqual([]);
});

test("a file that is no page is named without a link, or with one to where the source is", () => {
  const named = '<a href="https://git.example/holdfast/src/worker/rules/lease.ts">';
  expect(read("internals/lease-and-fence.html")).not.toContain("src/worker/rules/lease.ts");
  const out = path.join(OUT, "with-source");
  buildSite({ out, sourceUrl: "https://git.example/holdfast" });
  const page = readFileSync(path.join(out, "internals/lease-and-fence.html"), "utf8");
  expect(page).toContain(named);
});

function leads(url: string, target: string, ids: Map<string, Set<string>>): boolean {
  const [file = "", hash] = target.split("#");
  const to = file === "" ? url : path.posix.join(path.posix.dirname(url), file);
  if (!existsSync(path.join(OUT, to))) return false;
  return hash === undefined || hash === "content" || (ids.get(to)?.has(hash) ?? false);
}

function idsOf(html: string): Set<string> {
  return new Set([...html.matchAll(/ id="([^"]+)"/g)].map(([, id = ""]) => id));
}

function read(url: string): string {
  return readFileSync(path.join(OUT, url), "utf8");
}
