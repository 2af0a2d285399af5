// Serves the dashboard at `/`. The page is open, contains no data and may load only its own files. Those are a module
// (assets.ts), so the handler serves them without a file system too.

import type { Asset } from "./assets.js";
import type { HttpRequest, HttpResponse } from "./request.js";

const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** First segments of the page's paths; the page itself routes the rest. */
const FOLDERS: readonly string[] = [
  "schedules",
  "runs",
  "jobs",
  "queues",
  "locks",
  "instances",
  "alerts",
  "check",
  "audit",
  "settings",
  "login",
];

/** `path` is relative to the mount point. */
export function isPagePath(path: string): boolean {
  const [before, folder, ...rest] = path.split("/");
  if (before !== "") return false;
  return folder === undefined || (folder === "" && rest.length === 0) || FOLDERS.includes(folder);
}

const NOT_OF_THE_PAGE: readonly string[] = ["api", "assets"];

/** Whether a person requests an unknown path: browsers accept HTML, programs do not. */
export function isLostVisitor(path: string, request: HttpRequest): boolean {
  const [before, folder = ""] = path.split("/");
  const takesPage = /\btext\/html\b/.test(request.headers.get("accept") ?? "");
  return before === "" && takesPage && !NOT_OF_THE_PAGE.includes(folder);
}

/** The page; for the status 404 the page itself shows "not found". */
export async function pageResponse(
  basePath: string,
  status: 200 | 404 = 200,
): Promise<HttpResponse> {
  const { INDEX } = await import("./assets.js");
  const headers = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": CSP,
    "cache-control": "no-cache",
  };
  const content = INDEX === null ? unbuilt(basePath) : mounted(INDEX, basePath);
  return { status, headers, content };
}

/** Null: there is no such file. */
export async function assetResponse(
  name: string,
  request: HttpRequest,
): Promise<HttpResponse | null> {
  const { ASSETS } = await import("./assets.js");
  const asset = Object.hasOwn(ASSETS, name) ? ASSETS[name] : undefined;
  if (asset === undefined) return null;
  const takesGzip = /\bgzip\b/.test(request.headers.get("accept-encoding") ?? "");
  const headers: Record<string, string> = {
    "content-type": asset.type,
    // The name changes with the content.
    "cache-control": "public, max-age=31536000, immutable",
    vary: "accept-encoding",
    ...(takesGzip ? { "content-encoding": "gzip" } : {}),
  };
  return { status: 200, headers, content: takesGzip ? bytesOf(asset) : unpacked(asset) };
}

function bytesOf({ gzip }: Asset): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(gzip), (char) => char.charCodeAt(0));
}

function unpacked(asset: Asset): ReadableStream<Uint8Array> {
  const packed = new Response(bytesOf(asset)).body as ReadableStream<Uint8Array<ArrayBuffer>>;
  return packed.pipeThrough(new DecompressionStream("gzip") as never);
}

/** Makes the page's file references relative to the mount point, not to the requested path. */
function mounted(html: string, basePath: string): string {
  return html
    .replaceAll('"./assets/', `"${escaped(basePath)}/assets/`)
    .replace(
      'name="holdfast-base" content=""',
      `name="holdfast-base" content="${escaped(basePath)}"`,
    );
}

function unbuilt(basePath: string): string {
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Holdfast</title><meta name="viewport" content="width=device-width"></head>
<body>
<h1>Holdfast</h1>
<p>The dashboard was not built; <code>npm run build</code> does that. The API is under
<code>${escaped(`${basePath}/api`)}</code>, described at <a href="${escaped(`${basePath}/openapi.json`)}">openapi.json</a>.</p>
</body>
</html>
`;
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
