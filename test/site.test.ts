// The pages that VitePress gets: each document at its place, every link and picture in it followed. VitePress itself
// is run by scripts/site.mjs.

import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { slug, stageSite } from "../scripts/site/stage.mjs";

const OUT = mkdtempSync(path.join(os.tmpdir(), "holdfast-site-"));
const LINK = /!?\[(?:[^[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)/g;
const FENCED = /^ *(`{3,})[\s\S]*?^ *\1`*$/gm;
let pages: { file: string; page: string }[] = [];

beforeAll(() => {
  pages = stageSite({ folder: OUT });
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
    expect(read("internals/systems.md")).toContain(`(../examples/${name}.md)`);
});

test("no two documents are one page", () => {
  expect(new Set(pages.map(({ page }) => page)).size).toBe(pages.length);
});

test("every link and picture of the site is there, and so is every place within a page", () => {
  const ids = new Map(pages.map(({ page }) => [page, idsOf(read(page))]));
  const broken = pages.flatMap(({ page }) =>
    [
      ...read(page)
        .replaceAll(FENCED, "")
        .replaceAll(/`[^`\n]*`/g, "")
        .matchAll(LINK),
    ]
      .map(([, target = ""]) => target)
      .filter((target) => !/^(https?|mailto):/.test(target))
      .filter((target) => !leads(page, target, ids))
      .map((target) => `${page}: ${target}`),
  );
  expect(broken).toEqual([]);
});

test("the navigation leads to pages, and llms.txt to the plain text of each", () => {
  const { sidebar } = JSON.parse(read(".vitepress/site.json")) as {
    sidebar: { items: { link: string }[] }[];
  };
  const links = sidebar.flatMap(({ items }) => items.map(({ link }) => link));
  expect(links.length).toBeGreaterThan(50);
  expect(links.filter((link) => !existsSync(path.join(OUT, `${link}.md`)))).toEqual([]);
  const named = [...read("public/llms.txt").matchAll(/^- \[.+?\]\((\S+?)\)/gm)].map(
    ([, target = ""]) => target,
  );
  expect(named.filter((target) => !existsSync(path.join(OUT, "public", target)))).toEqual([]);
  expect(new Set(named)).toEqual(new Set(pages.map(({ page }) => `/${page}`)));
});

test("a file that is no page is named without a link, or with one to where the source is", () => {
  const named = "(https://git.example/holdfast/blob/main/src/worker/rules/lease.ts)";
  expect(read("internals/lease-and-fence.md")).not.toContain("src/worker/rules/lease.ts");
  const folder = path.join(OUT, "with-address");
  const address = {
    source: "https://git.example/holdfast/blob/main",
    edit: "https://git.example/holdfast/edit/main",
  };
  stageSite({ folder, address });
  const page = readFileSync(path.join(folder, "internals/lease-and-fence.md"), "utf8");
  expect(page).toContain(named);
  expect(page).toMatch(/^---\neditUrl: https:\/\/git\.example\/holdfast\/edit\/main\/docs\//);
});

function leads(page: string, target: string, ids: Map<string, Set<string>>): boolean {
  const [file = "", hash] = target.split("#");
  const to = file === "" ? page : path.posix.join(path.posix.dirname(page), file);
  if (!existsSync(path.join(OUT, to))) return false;
  return hash === undefined || (ids.get(to)?.has(hash) ?? false);
}

function idsOf(text: string): Set<string> {
  const ids = new Set<string>();
  for (const [, heading = ""] of text.replaceAll(FENCED, "").matchAll(/^#{1,6} (.+)$/gm)) {
    const id = slug(heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1"));
    let unique = id;
    for (let count = 1; ids.has(unique); count += 1) unique = `${id}-${count}`;
    ids.add(unique);
  }
  return ids;
}

function read(page: string): string {
  return readFileSync(path.join(OUT, page), "utf8");
}
