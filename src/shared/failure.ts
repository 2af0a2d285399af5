// Describes any thrown value as four short texts that every database can store.
// It never throws, not even for a Proxy that throws on every access: storing a failure must not fail because of
// its content (kestra-io/kestra#10326: redelivered forever).

import { encodeResult, storableText } from "./json.js";

export type StoredError = {
  code: string;
  name: string;
  message: string;
  stack?: string;
  /** Set where a list shows only the beginning of the error. Reading the run by itself returns all of it. */
  truncated?: true;
};

export const MESSAGE_LENGTH_MAX = 8 * 1024;
export const STACK_LENGTH_MAX = 16 * 1024;
/** The folder of the library's code. Frames in it say nothing about the handler that failed. */
export const OWN_FOLDER = new URL("..", import.meta.url).href;
const NAME_LENGTH_MAX = 100;
const CAUSE_COUNT_MAX = 5;
const CAUSE_LENGTH_MAX = 1_024;
const MEMBER_COUNT_MAX = 5;
const CODE = /^[A-Za-z0-9][A-Za-z0-9_.-]{1,63}$/;

/**
 * Returns code, name, message and stack of a thrown value, each cut to its limit. If `ownFolder` (a file URL, the
 * folder of the library's code) is given, the stack ends at the last frame of other code.
 */
export function describeFailure(thrown: unknown, ownFolder?: string): StoredError {
  const name = nameOf(thrown);
  const message = storableText(fullMessageOf(thrown, name), MESSAGE_LENGTH_MAX);
  const described: StoredError = { code: codeOf(thrown, name), name, message };
  const stack = stackOf(thrown, ownFolder);
  if (stack !== undefined) described.stack = stack;
  return described;
}

/** Cuts an error that another process reported to the limits of a stored one. */
export function storedError(said: StoredError): StoredError {
  return { ...said, message: storableText(said.message, MESSAGE_LENGTH_MAX) };
}

/** Removes the frames at the end that called the user's code: those of the library and of Node. */
function withoutCallers(stack: string, ownFolder: string): string {
  const ownPath = ownFolder.replace(/^file:\/\//, "");
  let end = stack.length;
  for (;;) {
    const start = stack.lastIndexOf("\n", end - 1);
    const line = stack.slice(start + 1, end);
    // Not a frame, or the first line: the stack has no frame of the user's code.
    if (start < 0 || !line.startsWith("    at ")) return stack;
    if (!line.includes(ownPath) && !line.includes("node:internal/")) return stack.slice(0, end);
    end = start;
  }
}

function nameOf(thrown: unknown): string {
  if (!isObject(thrown)) return "NonError";
  const own = textProp(thrown, "name");
  const ofClass = textProp(prop(thrown, "constructor"), "name");
  // A class that only extends Error says "Error"; the name of the class says more.
  const name = own === undefined || own === "" || own === "Error" ? ofClass : own;
  if (name === undefined || name === "" || name === "Object") return own || "NonError";
  return storableText(name, NAME_LENGTH_MAX) || "NonError";
}

function codeOf(thrown: unknown, name: string): string {
  const own = textProp(thrown, "code");
  if (own !== undefined && CODE.test(own)) return own;
  // fetch throws a TypeError that says only "fetch failed"; the useful code is in its cause.
  if (textProp(thrown, "message") === "fetch failed") {
    const hidden = textProp(prop(thrown, "cause"), "code");
    if (hidden !== undefined && CODE.test(hidden)) return hidden;
  }
  return codeFromName(name);
}

/** TypeError → TYPE_ERROR, HTTPError → HTTP_ERROR. */
function codeFromName(name: string): string {
  const code = name
    .slice(0, NAME_LENGTH_MAX)
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .replace(/([A-Z])([A-Z][a-z])/g, "$1_$2")
    .replace(/[^A-Za-z0-9]+/g, "_")
    .replace(/^_|_$/g, "")
    .toUpperCase();
  return code === "" ? "ERROR" : code.slice(0, 64);
}

function fullMessageOf(thrown: unknown, name: string): string {
  const seen: unknown[] = [thrown];
  let text = messageOf(thrown) || name;
  let cause = prop(thrown, "cause");
  while (cause !== undefined && cause !== null && seen.length <= CAUSE_COUNT_MAX) {
    if (seen.includes(cause)) break;
    seen.push(cause);
    const shown = messageOf(cause) || nameOf(cause);
    // Cut the main message before adding its causes; otherwise a long message would hide them all.
    text = storableText(text, MESSAGE_LENGTH_MAX - CAUSE_LENGTH_MAX);
    text += ` (caused by: ${storableText(shown, CAUSE_LENGTH_MAX)})`;
    cause = prop(cause, "cause");
  }
  return text;
}

function messageOf(thrown: unknown): string {
  if (typeof thrown === "string") return thrown;
  if (!isObject(thrown)) return String(thrown);
  const message = textProp(thrown, "message");
  const members = memberMessages(thrown);
  if (message !== undefined) return members === "" ? message : `${message} ${members}`.trim();
  if (members !== "") return members;
  // Not an Error, or an unreadable one: show its content, if it has any.
  const content = encodeResult(thrown);
  return content === "{}" && nameOf(thrown) !== "NonError" ? "" : content;
}

/** Returns the first messages of an AggregateError, because its own message is often empty. */
function memberMessages(thrown: object): string {
  const members = prop(thrown, "errors");
  const count = prop(members, "length");
  if (textProp(thrown, "name") !== "AggregateError" || typeof count !== "number") return "";
  const shown: string[] = [];
  for (let index = 0; index < Math.min(count, MEMBER_COUNT_MAX); index++) {
    const member = prop(members, index);
    const message = textProp(member, "message") ?? (typeof member === "string" ? member : "");
    shown.push(storableText(message || nameOf(member), CAUSE_LENGTH_MAX));
  }
  const more = count > shown.length ? `; and ${count - shown.length} more` : "";
  return `[${count} errors: ${shown.join("; ")}${more}]`;
}

function stackOf(thrown: unknown, ownFolder: string | undefined): string | undefined {
  const whole = textProp(thrown, "stack");
  if (whole === undefined || whole === "") return undefined;
  const stack = ownFolder === undefined ? whole : withoutCallers(whole, ownFolder);
  // The stack begins with the message. A long message is cut separately, so that the frames survive.
  const frames = stack.indexOf("\n    at ");
  if (frames <= CAUSE_LENGTH_MAX) return storableText(stack, STACK_LENGTH_MAX);
  const head = storableText(stack.slice(0, frames), CAUSE_LENGTH_MAX);
  return storableText(head + stack.slice(frames, frames + STACK_LENGTH_MAX), STACK_LENGTH_MAX);
}

const MEMBER = /"(code|name|message|stack)":"((?:[^"\\]|\\.)*)/g;

/** Reads a stored error, or as much as possible of its beginning. */
export function readStoredError(json: string): StoredError {
  try {
    const read: unknown = JSON.parse(json);
    if (isObject(read)) return read as StoredError;
  } catch {}
  const found: Record<string, string> = {};
  for (const [, name = "", text = ""] of json.matchAll(MEMBER)) found[name] ??= unescaped(text);
  const { code = "UNKNOWN", name = "Error", message = "", stack } = found;
  const shown = { code, name, message: `${message}${stack === undefined ? "…" : ""}` };
  return { ...shown, ...(stack === undefined ? {} : { stack: `${stack}…` }), truncated: true };
}

/** Reads JSON text that may end in the middle of an escape. */
function unescaped(text: string): string {
  for (const cut of [0, 1, 2, 3, 4, 5, 6]) {
    try {
      return JSON.parse(`"${text.slice(0, text.length - cut)}"`) as string;
    } catch {}
  }
  return "";
}

// ── members of thrown values ─────────────────────────────────────────────────────────────────────
// A thrown value may be anything: null, a string, a Proxy that throws on every access. These readers never throw;
// an unreadable member is undefined.

export function isObject(value: unknown): value is object {
  return (typeof value === "object" && value !== null) || typeof value === "function";
}

/** Returns the member, or undefined if there is none or reading it throws. */
export function prop(value: unknown, key: string | number): unknown {
  if (!isObject(value)) return undefined;
  try {
    return (value as Readonly<Record<string | number, unknown>>)[key];
  } catch {
    return undefined;
  }
}

/** Returns the member if it is a string. */
export function textProp(value: unknown, key: string): string | undefined {
  const member = prop(value, key);
  return typeof member === "string" ? member : undefined;
}

/** Returns the member if it is a number. */
export function numberProp(value: unknown, key: string): number | undefined {
  const member = prop(value, key);
  return typeof member === "number" ? member : undefined;
}

// ── equal errors ─────────────────────────────────────────────────────────────────────────────────

const UUID = /\b[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}\b/gi;
const TIME = /\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?/g;
const HEX = /\b(0x[\da-f]+|(?=[\da-f]*\d)(?=[\da-f]*[a-f])[\da-f]{8,})\b/gi;
const NUMBER = /\d+(\.\d+)?/g;

/** Replaces numbers, ids and times by placeholders ("run <id> took <n> ms"), so that equal errors have equal patterns. */
export function errorPattern(message: string): string {
  return message
    .replace(UUID, "<id>")
    .replace(TIME, "<time>")
    .replace(HEX, "<hex>")
    .replace(NUMBER, "<n>");
}

/** No connection was made, so the server received nothing. */
const NOT_RECEIVED = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"];

/** Whether a request certainly did not reach the server, by the error that `fetch` threw. */
export function isNotReceived(error: unknown): boolean {
  for (let link = error; link instanceof Error; link = link.cause) {
    const { code, errors } = link as { code?: unknown; errors?: readonly { code?: unknown }[] };
    const codes = errors?.map((each) => each.code) ?? [code];
    if (codes.length > 0 && codes.every((each) => NOT_RECEIVED.includes(String(each)))) return true;
  }
  return false;
}
