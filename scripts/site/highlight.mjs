// Colours for programs, by a handful of patterns: comments, texts, numbers, keywords. A language that is
// not known is left plain; nothing is ever guessed at the price of a wrong colour.

const KEYWORDS = {
  js: "as async await break case catch class const continue declare default do else export extends false finally for from function if import in instanceof interface let new null of readonly return static switch this throw true try type typeof undefined void while yield",
  sql: "all and any array as begin by case commit create cross delete desc distinct each else end execute exists for from function grant group having if in insert interval into is join language lateral left limit not null on or order perform replace returning returns round select set table then to trigger union update usage using values when where with",
  sh: "do done else export fi for if in then until while",
  python:
    "and as class def else except False finally for from if import in is None not or pass raise return True try while with",
};
const LINE = {
  js: "\\/\\/[^\\n]*|\\/\\*[\\s\\S]*?\\*\\/",
  sql: "--[^\\n]*",
  sh: "(?<![^\\s])#[^\\n]*",
  python: "#[^\\n]*",
};
const TEXTS = "\"(?:\\\\.|[^\"\\\\\\n])*\"|'(?:\\\\.|[^'\\\\\\n])*'|`(?:\\\\.|[^`\\\\])*`";
/** @type {Record<string, keyof typeof KEYWORDS>} */
const LANGUAGE = {
  ts: "js",
  js: "js",
  mjs: "js",
  json: "js",
  sql: "sql",
  sh: "sh",
  python: "python",
  py: "python",
};

/**
 * @param {string} text
 * @param {string} name of the language, as after the fence
 */
export function highlight(text, name) {
  const language = LANGUAGE[name];
  if (language === undefined) return escapeHtml(text);
  const words = KEYWORDS[language].replaceAll(" ", "|");
  const pattern = new RegExp(
    `(?<comment>${LINE[language]})|(?<text>${TEXTS})|(?<number>\\b\\d[\\d_]*(?:\\.\\d+)?\\b)|(?<word>\\b(?:${words})\\b)`,
    language === "sql" ? "gi" : "g",
  );
  let html = "";
  let at = 0;
  for (const match of text.matchAll(pattern)) {
    const kind = Object.entries(match.groups ?? {}).find(([, found]) => found !== undefined)?.[0];
    html += escapeHtml(text.slice(at, match.index));
    html += `<span class="${kind}">${escapeHtml(match[0])}</span>`;
    at = match.index + match[0].length;
  }
  return html + escapeHtml(text.slice(at));
}

/** @param {string} text */
export function escapeHtml(text) {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
