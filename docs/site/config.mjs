// The site's configuration. scripts/site/stage.mjs puts it beside the pages, with the navigation in site.json.

import fs from "node:fs";

const { sidebar, canEdit } = JSON.parse(
  fs.readFileSync(new URL("./site.json", import.meta.url), "utf8"),
);

/** As GitHub makes ids, so that one link works there and here. */
function slugify(text) {
  return text
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .replaceAll(/\s/g, "-");
}

/** A screenshot exists in light and in dark; the style shows one of them. */
function pictures(md) {
  const plain = md.renderer.rules.image;
  md.renderer.rules.image = (tokens, index, options, env, self) => {
    const token = tokens[index];
    const src = token.attrGet("src") ?? "";
    if (!/-light\.\w+$/.test(src)) return plain(tokens, index, options, env, self);
    const alt = md.utils.escapeHtml(self.renderInlineAsText(token.children, options, env));
    const shown = (name, theme) =>
      `<img src="${md.utils.escapeHtml(name)}" alt="${alt}" class="only-${theme}" loading="lazy">`;
    return shown(src, "light") + shown(src.replace(/-light(\.\w+)$/, "-dark$1"), "dark");
  };
}

/** An empty corner cell is not a heading. */
function corners(md) {
  md.core.ruler.push("corners", ({ tokens }) => {
    for (const [index, token] of tokens.entries())
      if (token.type === "th_open" && tokens[index + 1].content === "")
        token.tag = tokens[index + 2].tag = "td";
  });
}

export default {
  title: "Holdfast",
  description: "Cron scheduler and durable job queue for Node.js, on SQLite or PostgreSQL",
  lang: "en",
  cleanUrls: true,
  head: [["link", { rel: "icon", href: "/icon.svg" }]],
  srcExclude: ["public/**"],
  markdown: {
    html: false,
    anchor: { slugify },
    // The usual themes have too little contrast for small text.
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
    config(md) {
      pictures(md);
      corners(md);
    },
  },
  themeConfig: {
    logo: "/icon.svg",
    search: { provider: "local" },
    nav: [
      { text: "Tutorial", link: "/start/tutorial" },
      { text: "Documents", link: "/documents" },
      { text: "API", link: "/reference/api" },
    ],
    sidebar,
    outline: [2, 3],
    ...(canEdit && {
      editLink: { pattern: ({ frontmatter }) => frontmatter.editUrl, text: "Edit this page" },
    }),
  },
};
