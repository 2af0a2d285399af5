// Removes secrets from database URLs and from any text before it reaches a message, a log or a page.
// When in doubt it hides too much: a URL with a hidden host does less harm than a leak.

import { hideSecrets } from "./known-secrets.js";

const HIDDEN = "***";
const SECRET_PARAMETER =
  /\b((?:ssl)?password|pass|pwd|passphrase|secret|token|auth_?token|api_?key|sslkey)(\s*=\s*)('[^']*'?|[^\s&;]+)/gi;

/** Returns the URL without its passwords: `postgres://app:***@db:5432/main`. */
export function redactUrl(url: string): string {
  return redactUserInfo(url).replace(SECRET_PARAMETER, `$1$2${HIDDEN}`);
}

function redactUserInfo(url: string): string {
  // The last "@", not the first: the password may contain an unescaped one.
  const end = url.lastIndexOf("@");
  if (end < 0) return redactHostless(url);
  const start = url.indexOf("://") + 3;
  if (start < 3 || end < start) return redactMalformed(url, end);
  const [user = ""] = url.slice(start, end).split(":", 1);
  const isUserAlone = start + user.length === end;
  if (isUserAlone)
    return /%3a/i.test(user) ? `${url.slice(0, start)}${HIDDEN}${url.slice(end)}` : url;
  return `${url.slice(0, start)}${user}:${HIDDEN}${url.slice(end)}`;
}

/** The scheme, and the part where hosts and their ports should be. */
const AUTHORITY = /^([a-z][a-z0-9+.-]*:\/\/|postgres(?:ql)?:\/?)([^/?#]*)/i;
const HOST = /^(?:[^:[\]]*|\[[^\]]*\])(?::\d{0,5})?$/;

/** Hides the rest of a URL without a host (`postgres://app:pw`) from where the port should be: it is the password. */
function redactHostless(url: string): string {
  const [, scheme = "", hosts = ""] = AUTHORITY.exec(url) ?? [];
  if (hosts.split(",").every((host) => HOST.test(host))) return url;
  return `${scheme}${hosts.split(":", 1)[0]}:${HIDDEN}`;
}

/** Hides everything before the "@" of a mistyped URL (`postgres//app:pw@db`), because the start of its password is unknown. */
function redactMalformed(url: string, end: number): string {
  const [scheme = ""] = /^(?:[a-z]+:\/{0,2}|[a-z]+\/{1,2})(?=[^/].*@)/i.exec(url) ?? [];
  const isScheme = scheme.includes("/") || SCHEMES.has(scheme.toLowerCase());
  return `${isScheme ? scheme : ""}${HIDDEN}${url.slice(end)}`;
}

const SCHEMES: ReadonlySet<string> = new Set(["postgres:", "postgresql:", "sqlite:", "libsql:"]);
/** Longer texts are cut before the search: a log line needs no more. */
const TEXT_LENGTH_MAX = 256 * 1_024;
/** The search goes this far beyond the cut, so that it finds a secret that lies across it. */
const CUT_OVERLAP = 8 * 1_024;
/** The user in a URL and the colon before the password. */
const URL_USER = /:\/\/[^\s:@/]*:/;
/** A mistyped database URL: a colon or a slash is missing. */
const MALFORMED_USER = /\b((?:postgres(?:ql)?|libsql)(?::\/?|\/\/))(?!\/)[^\s:@/]+:/i;
const CREDENTIALS = /\b(bearer|basic)\s+[\w.~+/=-]{6,}/gi;
const SECRET_NAME =
  /^(pass(word|wd|phrase)?|pwd|secret|token|authorization|cookie|set-cookie|credentials?|api[-_]?key|private[-_]?key|access[-_]?token|refresh[-_]?token|client[-_]?secret)$/i;

/** Returns any text without passwords in URLs, credentials of requests and parameters with the name of a secret. */
export function redactText(text: string): string {
  const known = hideSecrets(text.slice(0, TEXT_LENGTH_MAX + CUT_OVERLAP));
  const isCut = known.length > TEXT_LENGTH_MAX;
  return (isCut ? `${known.slice(0, TEXT_LENGTH_MAX)}…` : known)
    .replace(/\S+/g, redactWord)
    .replace(CREDENTIALS, `$1 ${HIDDEN}`)
    .replace(SECRET_PARAMETER, `$1$2${HIDDEN}`);
}

/** Applies `redactText` to the message and the stack of an error. */
export function redactError<E extends { readonly message: string; readonly stack?: string }>(
  error: E,
): E {
  const { message, stack } = error;
  return {
    ...error,
    message: redactText(message),
    ...(stack === undefined ? {} : { stack: redactText(stack) }),
  };
}

/** Hides everything from the first password of a word (it ends at a space) to its last "@", in one pass. */
function redactWord(word: string): string {
  const end = word.lastIndexOf("@");
  if (end < 0) return word;
  const user = URL_USER.exec(word);
  const wrong = MALFORMED_USER.exec(word);
  const from = Math.min(
    user ? user.index + user[0].length : end + 1,
    wrong?.[1] === undefined ? end + 1 : wrong.index + wrong[1].length,
  );
  return from > end ? word : `${word.slice(0, from)}${HIDDEN}${word.slice(end)}`;
}

/** For JSON.stringify: hides the values of members with the name of a secret. */
export function redactMember(name: string, value: unknown): unknown {
  return SECRET_NAME.test(name) && value !== null && value !== undefined ? HIDDEN : value;
}

const QUOTED_MEMBER = /"([\w-]+)"(\s*:\s*)("(?:[^"\\]|\\.)*"?|[^\s",}\]]+)/g;

/** Returns the beginning of a body from the network: JSON, whole or cut off, or any text. */
export function redactBody(body: string, lengthMax: number): string {
  // Cut before the search, with reserve, because hiding shrinks the text.
  const shown = redactText(redactJson(hideSecrets(body), lengthMax * 4));
  return shown.length > lengthMax ? `${shown.slice(0, lengthMax)}…` : shown;
}

function redactJson(body: string, lengthMax: number): string {
  try {
    return JSON.stringify(JSON.parse(body), redactMember).slice(0, lengthMax);
  } catch {
    // Not JSON, or only its beginning: find the members by a pattern.
    const hide = (whole: string, name: string, colon: string) =>
      SECRET_NAME.test(name) ? `"${name}"${colon}"${HIDDEN}"` : whole;
    return body.slice(0, lengthMax).replace(QUOTED_MEMBER, hide);
  }
}
