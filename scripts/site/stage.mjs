// Writes the documents as VitePress wants them, for scripts/site.mjs: each page at its place on the site, with links that
// lead there, the navigation from docs/README.md, and llms.txt with the plain text of every page.

import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = path.dirname(path.dirname(path.dirname(fileURLToPath(import.meta.url))));
const ASSETS = path.join(root, "docs", "site");
const HOME = "README.md";
const INDEX = "docs/README.md";
/** A block of code, which stays as it is; a comment; a link or a picture. */
const PARTS =
  /(?:^ *(`{3,})([\s\S]*?)^ *\1`*$)|^(<!--.*-->\n?)|(!?)\[((?:[^[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)/gm;

/** @typedef {{ file: string, title: string, about: string }} Link */
/** @typedef {{ title: string, links: Link[] }} Section */

/**
 * Writes the pages and the configuration into an empty folder.
 * @param {{ folder: string, address?: import("../address.mjs").Address | null }} params
 *   address: where files that are no pages can be read; none: they are named, without a link
 * @returns {{ file: string, page: string }[]} each document with its page
 */
export function stageSite({ folder, address = null }) {
  const files = crawl();
  const sections = sectionsOf(read(INDEX));
  for (const file of files) {
    const text = textOf({ file, files, address, folder });
    const matter = address ? `---\neditUrl: ${address.edit}/${file}\n---\n\n` : "";
    write(path.join(folder, pageOf(file)), matter + text);
    write(path.join(folder, "public", pageOf(file)), text);
  }
  const hidden = path.join(folder, ".vitepress");
  fs.cpSync(ASSETS, hidden, { recursive: true });
  fs.cpSync(path.join(ASSETS, "icon.svg"), path.join(folder, "public", "icon.svg"));
  const sidebar = sections.map(({ title, links }) => ({
    text: title,
    collapsed: title === "Decisions",
    items: links.map((link) => ({ text: link.title, link: urlOf(link.file) })),
  }));
  write(
    path.join(hidden, "site.json"),
    JSON.stringify({ sidebar, canEdit: address !== null }, null, 2),
  );
  write(path.join(folder, "public", "llms.txt"), llmsText(sections, files));
  return files.map((file) => ({ file, page: pageOf(file) }));
}

/** The ids of headings as GitHub makes them: small letters, no punctuation, hyphens for spaces. @param {string} text */
export function slug(text) {
  return text
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .replaceAll(/\s/g, "-");
}

/** Returns every document that can be reached from the first page and the index. */
function crawl() {
  const seen = new Set([HOME, INDEX]);
  for (const file of seen) {
    for (const [, target = ""] of read(file).matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)) {
      const linked = documentAt(path.posix.join(path.posix.dirname(file), target));
      if (linked.endsWith(".md") && fs.existsSync(path.join(root, linked))) seen.add(linked);
    }
  }
  return [...seen];
}

/**
 * The text of a page: without comments, with links between pages, and with pictures beside it.
 * @param {{ file: string, files: string[], address: import("../address.mjs").Address | null, folder: string }} params
 */
function textOf({ file, files, address, folder }) {
  return read(file).replaceAll(PARTS, (all, _mark, fenced, comment, bang, text, href) => {
    if (fenced !== undefined) return all;
    // Comments are for the tests; the documents contain no other HTML.
    if (comment !== undefined) return "";
    return bang ? picture(text, href) : link(text, href);
  });

  /** @param {string} text @param {string} href */
  function link(text, href) {
    if (/^(https?:|mailto:|#)/.test(href)) return `[${text}](${href})`;
    const [target = "", hash] = href.split("#");
    const linked = path.posix.join(path.posix.dirname(file), target);
    const anchor = hash === undefined ? "" : `#${hash}`;
    const document = documentAt(linked);
    if (files.includes(document)) return `[${text}](${beside(pageOf(document))}${anchor})`;
    return address === null ? text : `[${text}](${address.source}/${linked}${anchor})`;
  }

  /** @param {string} text @param {string} href */
  function picture(text, href) {
    const image = path.posix.join(path.posix.dirname(file), href);
    for (const each of [image, image.replace(/-light(\.\w+)$/, "-dark$1")])
      if (fs.existsSync(path.join(root, each)))
        for (const to of [folder, path.join(folder, "public")])
          copy(each, path.join(to, pageOf(each)));
    return `![${text}](${beside(pageOf(image))})`;
  }

  /** @param {string} page */
  function beside(page) {
    const way = path.posix.relative(path.posix.dirname(pageOf(file)), page);
    return way.startsWith(".") ? way : `./${way}`;
  }
}

/** A folder stands for its README, as on GitHub. @param {string} linked below the root */
function documentAt(linked) {
  return path.posix.extname(linked) === "" ? path.posix.join(linked, "README.md") : linked;
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
    }))
    .filter(({ links }) => links.length > 0);
}

/**
 * The index for language models (llmstxt.org): what the project is, and every page with a link to its plain text.
 * @param {Section[]} sections
 * @param {string[]} files
 */
function llmsText(sections, files) {
  const first = read(HOME).split("\n\n")[1]?.replaceAll("\n", " ") ?? "";
  const known = sections.flatMap(({ links }) => links.map(({ file }) => file));
  const others = files
    .filter((file) => !known.includes(file))
    .map((file) => ({ file, title: /^# (.+)$/m.exec(read(file))?.[1] ?? file, about: "" }));
  const parts = [...sections, { title: "Optional", links: others }].map(({ title, links }) => {
    const lines = links.map(
      (link) => `- [${link.title}](/${pageOf(link.file)})${link.about ? `: ${link.about}` : ""}`,
    );
    return `## ${title}\n\n${lines.join("\n")}\n`;
  });
  return `# Holdfast\n\n> ${first}\n\n${parts.join("\n")}`;
}

/**
 * Returns the place of a document on the site: docs/guides/x.md is guides/x.md, the README is the first page.
 * @param {string} file
 */
function pageOf(file) {
  if (file === HOME) return "index.md";
  if (file === INDEX) return "documents.md";
  return file
    .replace(/^docs\//, "")
    .replace(/\/README\.md$/, ".md")
    .toLowerCase();
}

/** @param {string} file */
function urlOf(file) {
  return `/${pageOf(file).replace(/\.md$/, "")}`;
}

/** @param {string} file below the root */
function read(file) {
  return fs.readFileSync(path.join(root, file), "utf8");
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
