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
  return { status: 200, headers, content: takesGzip ? packed(asset) : await unpacked(asset) };
}

/** Decoded once: anybody may request these files, and decoding one takes milliseconds of the event loop. */
const PACKED = new WeakMap<Asset, Uint8Array<ArrayBuffer>>();
const UNPACKED = new WeakMap<Asset, Promise<Uint8Array<ArrayBuffer>>>();

function packed(asset: Asset): Uint8Array<ArrayBuffer> {
  const known = PACKED.get(asset);
  if (known) return known;
  const bytes = Uint8Array.from(atob(asset.gzip), (char) => char.charCodeAt(0));
  PACKED.set(asset, bytes);
  return bytes;
}

function unpacked(asset: Asset): Promise<Uint8Array<ArrayBuffer>> {
  const known = UNPACKED.get(asset);
  if (known) return known;
  const stream = new Response(packed(asset)).body as ReadableStream<Uint8Array<ArrayBuffer>>;
  const bytes = new Response(stream.pipeThrough(new DecompressionStream("gzip") as never))
    .arrayBuffer()
    .then((buffer) => new Uint8Array(buffer));
  UNPACKED.set(asset, bytes);
  return bytes;
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
