// The frame around a page: navigation by reader, what is on this page, the page before and the one after.
// No script is needed to read; search is the only thing that uses one.

import path from "node:path";
import { escapeHtml } from "./highlight.mjs";

const POLICY =
  "default-src 'none'; img-src 'self'; style-src 'self'; script-src 'self'; base-uri 'none'; form-action 'none'";

/** @typedef {{ url: string, title: string, about: string }} Link */

/**
 * @param {object} params
 * @param {import("./page.mjs").Page} params.page
 * @param {string} params.url
 * @param {{ title: string, links: Link[] }[]} params.sections
 * @param {Link | null} params.before
 * @param {Link | null} params.after
 */
export function layout({ page, url, sections, before, after }) {
  const up = "../".repeat(url.split("/").length - 1);
  const isHome = url === "index.html";
  const title = isHome
    ? "Holdfast: scheduled work that can say what happened"
    : `${page.title} · Holdfast`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)}</title>
<link rel="icon" href="${up}assets/icon.svg">
<link rel="stylesheet" href="${up}assets/style.css">
</head>
<body data-up="${up}"${page.isWide ? ' class="wide"' : ""}>
<a class="skip" href="#content">To the text</a>
<header class="top">
<a class="brand" href="${up}index.html"><img src="${up}assets/icon.svg" alt="" width="22" height="22"> Holdfast</a>
<div class="search" hidden><input type="search" placeholder="Search" aria-label="Search the documents" autocomplete="off"><ol class="found" hidden></ol></div>
<nav class="quick" aria-label="Shortcuts"><a href="${up}start/tutorial.html">Tutorial</a><a href="${up}documents.html">Documents</a><a href="${up}reference/api.html">API</a></nav>
</header>
<div class="frame">
<details class="contents"><summary>Contents</summary>${navigation(sections, url)}</details>
<nav class="side" aria-label="Documents">${navigation(sections, url)}</nav>
<main id="content">
${page.html}
${neighbours(before, after, url)}
</main>
${onThisPage(page)}
</div>
<script src="${up}assets/index.js" defer></script>
<script src="${up}assets/reading.js" defer></script>
</body>
</html>
`;
}

/**
 * @param {{ title: string, links: Link[] }[]} sections
 * @param {string} url
 */
function navigation(sections, url) {
  return sections
    .map(({ title, links }) => {
      const items = links.map((link) => {
        const here = link.url === url ? ' aria-current="page"' : "";
        return `<li><a href="${from(url, link.url)}"${here}>${escapeHtml(link.title)}</a></li>`;
      });
      return `<h2>${escapeHtml(title)}</h2>\n<ul>${items.join("\n")}</ul>`;
    })
    .join("\n");
}

/**
 * @param {Link | null} before
 * @param {Link | null} after
 * @param {string} url
 */
function neighbours(before, after, url) {
  if (!before && !after) return "";
  const link = (
    /** @type {Link | null} */ each,
    /** @type {string} */ word,
    /** @type {string} */ rel,
  ) =>
    each
      ? `<a rel="${rel}" href="${from(url, each.url)}"><span>${word}</span> ${escapeHtml(each.title)}</a>`
      : "<span></span>";
  return `<nav class="neighbours" aria-label="Before and after">${link(before, "Before", "prev")}${link(after, "Next", "next")}</nav>`;
}

/** @param {import("./page.mjs").Page} page */
function onThisPage({ headings }) {
  const shown = headings.filter(({ depth }) => depth === 2);
  if (shown.length < 3) return '<aside class="here"></aside>';
  const items = shown.map(({ id, text }) => `<li><a href="#${id}">${escapeHtml(text)}</a></li>`);
  return `<aside class="here" aria-label="On this page"><h2>On this page</h2><ul>${items.join("\n")}</ul></aside>`;
}

/**
 * @param {string} url
 * @param {string} to
 */
function from(url, to) {
  return path.posix.relative(path.posix.dirname(url), to);
}
