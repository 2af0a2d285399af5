// One document as HTML: its headings get ids as GitHub gives them, its links lead to pages, its pictures
// have a dark twin where there is one.

import fs from "node:fs";
import path from "node:path";
import { Marked } from "marked";
import { escapeHtml, highlight } from "./highlight.mjs";

/** Columns. */
const WIDE = 7;

/**
 * @typedef {object} Page
 * @property {string} title
 * @property {string} html
 * @property {{ id: string, text: string, depth: number }[]} headings without the title
 * @property {string[]} images files below the root
 * @property {boolean} isWide it has a table that needs more room than text does
 */

/**
 * @param {object} params
 * @param {string} params.root
 * @param {string} params.file
 * @param {string[]} params.pages every document that becomes a page
 * @param {(file: string) => string} params.urlOf
 * @param {string | null} params.sourceUrl
 * @returns {Page}
 */
export function readPage({ root, file, pages, urlOf, sourceUrl }) {
  const url = urlOf(file);
  /** @type {Page["headings"]} */
  const headings = [];
  /** @type {Set<string>} */
  const images = new Set();
  const ids = new Map();
  let title = path.basename(file, ".md");
  let isWide = false;

  const marked = new Marked({ gfm: true });
  marked.use({
    renderer: {
      heading({ tokens, depth }) {
        const html = this.parser.parseInline(tokens);
        const text = plain(html);
        const id = unique(slug(text));
        if (depth === 1) title = text;
        else headings.push({ id, text, depth });
        const anchor =
          depth === 1
            ? ""
            : `<a class="anchor" href="#${id}" aria-label="Link to “${escapeHtml(text)}”">#</a>`;
        return `<h${depth} id="${id}">${html}${anchor}</h${depth}>\n`;
      },
      link({ href, tokens }) {
        const html = this.parser.parseInline(tokens);
        const target = resolve(href);
        return target === null ? html : `<a href="${escapeHtml(target)}">${html}</a>`;
      },
      image({ href, text }) {
        const image = path.posix.join(path.posix.dirname(file), href);
        const alt = escapeHtml(text);
        const dark = image.replace(/-light(\.\w+)$/, "-dark$1");
        images.add(image);
        // A drawing has words in it, which stay legible where it has to be moved from side to side.
        if (image.endsWith(".svg"))
          return `<span class="drawing" tabindex="0"><img src="${imageUrl(image)}" alt="${alt}" loading="lazy"></span>`;
        if (dark === image || !fs.existsSync(path.join(root, dark)))
          return `<img src="${imageUrl(image)}" alt="${alt}" loading="lazy">`;
        images.add(dark);
        return `<picture><source media="(prefers-color-scheme: dark)" srcset="${imageUrl(dark)}"><img src="${imageUrl(image)}" alt="${alt}" loading="lazy"></picture>`;
      },
      code({ text, lang }) {
        return `<pre tabindex="0"><code>${highlight(text, lang ?? "")}</code></pre>\n`;
      },
      table(token) {
        const cell = (/** @type {{ tokens: any }} */ each, /** @type {string} */ tag) =>
          `<${tag}>${this.parser.parseInline(each.tokens)}</${tag}>`;
        // A corner without words is no heading.
        const head = token.header.map((each) => cell(each, each.text ? "th" : "td")).join("");
        const rows = token.rows.map(
          (row) => `<tr>${row.map((each) => cell(each, "td")).join("")}</tr>`,
        );
        isWide ||= token.header.length > WIDE;
        const isBare = token.header.every(({ text }) => text === "");
        const top = isBare ? "" : `<thead><tr>${head}</tr></thead>`;
        return `<div class="table" tabindex="0"><table>${top}<tbody>${rows.join("\n")}</tbody></table></div>\n`;
      },
      html({ text }) {
        // Comments are for the tests; there is no other HTML in the documents.
        return text.startsWith("<!--") ? "" : escapeHtml(text);
      },
    },
  });
  const html = /** @type {string} */ (
    marked.parse(fs.readFileSync(path.join(root, file), "utf8"), { async: false })
  );
  return { title, html, headings, images: [...images], isWide };

  /** @param {string} href @returns {string | null} null: there is nothing to lead to */
  function resolve(href) {
    if (/^(https?:|mailto:|#)/.test(href)) return href;
    const [target = "", hash] = href.split("#");
    const linked = path.posix.join(path.posix.dirname(file), target);
    const anchor = hash === undefined ? "" : `#${hash}`;
    const document = documentAt(linked);
    if (pages.includes(document)) return relative(urlOf(document)) + anchor;
    return sourceUrl === null ? null : `${sourceUrl}/${linked}${anchor}`;
  }

  /** @param {string} image */
  function imageUrl(image) {
    return relative(image.replace(/^docs\//, ""));
  }

  /** @param {string} to */
  function relative(to) {
    return path.posix.relative(path.posix.dirname(url), to) || path.posix.basename(to);
  }

  /** @param {string} id */
  function unique(id) {
    const count = ids.get(id) ?? 0;
    ids.set(id, count + 1);
    return count === 0 ? id : `${id}-${count}`;
  }
}

/** A folder stands for its README, as on GitHub. @param {string} linked below the root */
export function documentAt(linked) {
  return path.posix.extname(linked) === "" ? path.posix.join(linked, "README.md") : linked;
}

/** As GitHub makes them: small letters, no punctuation, hyphens for spaces. @param {string} text */
function slug(text) {
  return text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .replaceAll(/\s/g, "-");
}

/** @param {string} html */
function plain(html) {
  return html
    .replaceAll(/<[^>]+>/g, "")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'")
    .replaceAll("&amp;", "&");
}
