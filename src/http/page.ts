// The page at `/`: open, without any data in it, and allowed to load nothing.

export const PAGE_CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

export function page(basePath: string): string {
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Holdfast</title><meta name="viewport" content="width=device-width"></head>
<body>
<h1>Holdfast</h1>
<p>This process serves the Holdfast API under <code>${escaped(`${basePath}/api`)}</code>.</p>
<p>It is described at <a href="${escaped(`${basePath}/openapi.json`)}">openapi.json</a>; whether it is well is told by
<a href="${escaped(`${basePath}/healthz`)}">healthz</a> and <a href="${escaped(`${basePath}/readyz`)}">readyz</a>.</p>
</body>
</html>
`;
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
