// `npm run site`: the documents as pages, in site/. What is linked from README.md and docs/README.md becomes
// a page; the index is the navigation. Needs no server: the pages work from a folder.

import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { documentAt, readPage } from "./site/page.mjs";
import { layout } from "./site/template.mjs";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const ASSETS = path.join(root, "docs", "site");
const HOME = "README.md";
const INDEX = "docs/README.md";

/** @typedef {{ title: string, links: { file: string, title: string, about: string }[] }} Section */

/**
 * Builds the whole site anew.
 * @param {{ out: string, sourceUrl?: string | null }} params
 *   sourceUrl: where files that are no pages can be read; none: they are named, without a link
 * @returns {{ file: string, url: string }[]} the pages
 */
export function buildSite({ out, sourceUrl = null }) {
  fs.rmSync(out, { recursive: true, force: true });
  const pages = crawl();
  const sections = sectionsOf(fs.readFileSync(path.join(root, INDEX), "utf8"));
  const order = sections.flatMap(({ links }) => links.map(({ file }) => file));
  /** @type {{ url: string, title: string, text: string }[]} */
  const found = [];
  for (const file of pages) {
    const page = readPage({ root, file, pages, urlOf, sourceUrl });
    const url = urlOf(file);
    const at = order.indexOf(file);
    const html = layout({
      page,
      url,
      sections: sections.map((each) => ({ ...each, links: each.links.map(withUrl) })),
      before: at > 0 ? withUrl(entry(order[at - 1])) : null,
      after: at >= 0 && at < order.length - 1 ? withUrl(entry(order[at + 1])) : null,
    });
    write(path.join(out, url), html);
    for (const image of page.images) copy(image, path.join(out, image.replace(/^docs\//, "")));
    found.push({ url, title: page.title, text: "" });
    for (const { id, text } of page.headings)
      found.push({ url: `${url}#${id}`, title: text, text: page.title });
  }
  for (const asset of fs.readdirSync(ASSETS))
    copy(path.relative(root, path.join(ASSETS, asset)), path.join(out, "assets", asset));
  write(path.join(out, "assets", "index.js"), `window.PAGES = ${JSON.stringify(found)};\n`);
  return pages.map((file) => ({ file, url: urlOf(file) }));

  /** @param {string | undefined} file */
  function entry(file) {
    const all = sections.flatMap(({ links }) => links);
    return all.find((link) => link.file === file) ?? { file: file ?? "", title: "", about: "" };
  }
}

/** @param {{ file: string, title: string, about: string }} link */
function withUrl(link) {
  return { ...link, url: urlOf(link.file) };
}

/** Every document that can be reached from the first page and the index. */
function crawl() {
  const seen = new Set([HOME, INDEX]);
  for (const file of seen) {
    const text = fs.readFileSync(path.join(root, file), "utf8");
    for (const [, target = ""] of text.matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)) {
      const linked = documentAt(path.posix.join(path.posix.dirname(file), target));
      if (linked.endsWith(".md") && fs.existsSync(path.join(root, linked))) seen.add(linked);
    }
  }
  return [...seen];
}

/**
 * The navigation: the headings of the index, and the list below each.
 * @param {string} text
 * @returns {Section[]}
 */
function sectionsOf(text) {
  return text
    .split(/^## /m)
    .slice(1)
    .map((section) => ({
      title: section.split("\n")[0] ?? "",
      links: [...section.matchAll(/^- \[(.+?)\]\(([^)#]+\.md)\)(?:: (.+))?$/gm)].map(
        ([, title = "", target = "", about = ""]) => ({
          file: path.posix.join(path.posix.dirname(INDEX), target),
          title,
          about,
        }),
      ),
    }));
}

/**
 * Where a document is on the site: docs/guides/x.md is guides/x.html, the README is the first page.
 * @param {string} file
 */
function urlOf(file) {
  if (file === HOME) return "index.html";
  if (file === INDEX) return "documents.html";
  const inside = file.replace(/^docs\//, "").replace(/\/README\.md$/, ".md");
  return inside.replace(/\.md$/, ".html").toLowerCase();
}

/**
 * @param {string} file
 * @param {string} text
 */
function write(file, text) {
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, text);
}

/**
 * @param {string} from below the root
 * @param {string} to
 */
function copy(from, to) {
  fs.mkdirSync(path.dirname(to), { recursive: true });
  fs.copyFileSync(path.join(root, from), to);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: repository } = process.env;
  const sourceUrl = server && repository ? `${server}/${repository}/blob/main` : null;
  const pages = buildSite({ out: path.join(root, "site"), sourceUrl });
  console.log(`✓ site/: ${pages.length} pages. Open site/index.html.`);
}
