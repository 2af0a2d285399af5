// Takes the secrets out of a database address, or out of any text, before it reaches a message, a log or
// a page.
// When in doubt it hides too much: an address with a hidden host is a smaller harm than a leak.

import { hideSecrets } from "./known-secrets.js";

const HIDDEN = "***";
const SECRET_PARAMETER =
  /\b((?:ssl)?password|pass|pwd|passphrase|secret|token|auth_?token|api_?key|sslkey)(\s*=\s*)('[^']*'?|[^\s&;]+)/gi;

/** The address without its passwords: `postgres://app:***@db:5432/main`. */
export function redactUrl(url: string): string {
  return redactUserInfo(url).replace(SECRET_PARAMETER, `$1$2${HIDDEN}`);
}

function redactUserInfo(url: string): string {
  // The last "@", not the first: an unescaped one inside the password must not end the hiding.
  const end = url.lastIndexOf("@");
  if (end < 0) return url;
  const start = url.indexOf("://") + 3;
  if (start < 3 || end < start) return redactMalformed(url, end);
  const [user = ""] = url.slice(start, end).split(":", 1);
  const isUserAlone = start + user.length === end;
  if (isUserAlone)
    return /%3a/i.test(user) ? `${url.slice(0, start)}${HIDDEN}${url.slice(end)}` : url;
  return `${url.slice(0, start)}${user}:${HIDDEN}${url.slice(end)}`;
}

/** An address with a slip in it, `postgres//app:pw@db`: nobody knows where its password begins. */
function redactMalformed(url: string, end: number): string {
  const [scheme = ""] = /^(?:[a-z]+:\/{0,2}|[a-z]+\/{1,2})(?=[^/].*@)/i.exec(url) ?? [];
  const isScheme = scheme.includes("/") || SCHEMES.has(scheme.toLowerCase());
  return `${isScheme ? scheme : ""}${HIDDEN}${url.slice(end)}`;
}

const SCHEMES: ReadonlySet<string> = new Set(["postgres:", "postgresql:", "sqlite:", "libsql:"]);
/** Longer texts are cut before anybody looks through them: a log line is not the place for more. */
const TEXT_LENGTH_MAX = 256 * 1_024;
/** A secret that lies across the cut is still found as a whole. */
const CUT_OVERLAP = 8 * 1_024;
/** The name in an address and the colon before its password. */
const URL_USER = /:\/\/[^\s:@/]*:/;
/** The slips of a database's address: a colon or a slash is missing. */
const MALFORMED_USER = /\b((?:postgres(?:ql)?|libsql)(?::\/?|\/\/))(?!\/)[^\s:@/]+:/i;
const CREDENTIALS = /\b(bearer|basic)\s+[\w.~+/=-]{6,}/gi;
const SECRET_NAME =
  /^(pass(word|wd|phrase)?|pwd|secret|token|authorization|cookie|set-cookie|credentials?|api[-_]?key|private[-_]?key|access[-_]?token|refresh[-_]?token|client[-_]?secret)$/i;

/** Any text without passwords in addresses, credentials of requests and parameters named as secrets. */
export function redactText(text: string): string {
  const known = hideSecrets(text.slice(0, TEXT_LENGTH_MAX + CUT_OVERLAP));
  const isCut = known.length > TEXT_LENGTH_MAX;
  return (isCut ? `${known.slice(0, TEXT_LENGTH_MAX)}…` : known)
    .replace(/\S+/g, redactWord)
    .replace(CREDENTIALS, `$1 ${HIDDEN}`)
    .replace(SECRET_PARAMETER, `$1$2${HIDDEN}`);
}

/** The message and the stack of an error, as `redactText` shows them. */
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

/** A word ends at a space: its first address hides all up to the last "@" of the word, so each is looked through once. */
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

/** For JSON.stringify: what is named as a secret is not written. */
export function redactMember(name: string, value: unknown): unknown {
  return SECRET_NAME.test(name) && value !== null && value !== undefined ? HIDDEN : value;
}

const QUOTED_MEMBER = /"([\w-]+)"(\s*:\s*)("(?:[^"\\]|\\.)*"?|[^\s",}\]]+)/g;

/** The beginning of a body as it came over the network: JSON, whole or cut off, or any text. */
export function redactBody(body: string, lengthMax: number): string {
  // Cut before the text is looked through, with room for what is hidden to shrink it.
  const shown = redactText(redactJson(hideSecrets(body), lengthMax * 4));
  return shown.length > lengthMax ? `${shown.slice(0, lengthMax)}…` : shown;
}

function redactJson(body: string, lengthMax: number): string {
  try {
    return JSON.stringify(JSON.parse(body), redactMember).slice(0, lengthMax);
  } catch {
    // No JSON, or the beginning of some: its members are found by how they look.
    const hide = (whole: string, name: string, colon: string) =>
      SECRET_NAME.test(name) ? `"${name}"${colon}"${HIDDEN}"` : whole;
    return body.slice(0, lengthMax).replace(QUOTED_MEMBER, hide);
  }
}
