// Encodes values as JSON text. Inputs are strict: a value that JSON cannot carry unchanged is refused with its path.
// Results are lenient: any return value of a handler becomes some text.
// One walker does both and reads every member once, so a getter cannot return one value to the check and another to
// the encoder. Its work, depth and output are bounded.

import {
  InputNotJsonError,
  InputTooLargeError,
  ItemNotJsonError,
  ItemTooLargeError,
  ResultTooLargeError,
  StepNotJsonError,
} from "./errors.js";
import { hideSecrets } from "./known-secrets.js";
import { type PathSegment, pathText } from "./problems.js";

export const INPUT_BYTES_MAX = 256 * 1024;
export const RESULT_BYTES_MAX = 1024 * 1024;
export const JSON_DEPTH_MAX = 100;

/** Stored values are at most JSON_DEPTH_MAX deep; a marker or an envelope may be around them. */
const STORED_DEPTH_MAX = JSON_DEPTH_MAX + 10;

// A result beyond its limit is still counted up to here, so that the marker can show its size. Beyond this, `bytes` is
// a lower bound, because more counting would block the event loop.
const RESULT_BYTES_COUNTED_MAX = 16 * RESULT_BYTES_MAX;
const PREVIEW_LENGTH = 1_024;

/** Returns the JSON text of an input; throws `InputNotJsonError` or `InputTooLargeError`. */
export function encodeInput(value: unknown): string {
  return write(value, { refuse: refuseInput, charsMax: INPUT_BYTES_MAX });
}

/** Returns the JSON text of a handler's return value. Never throws: a value that is too large becomes a marker. */
export function encodeResult(value: unknown): string {
  if (value === undefined || value === null) return "null";
  let text = "";
  let bytes = 0;
  try {
    const writer = new Writer({ refuse: markResult, charsMax: RESULT_BYTES_COUNTED_MAX });
    text = hideSecrets(writer.root(value) ?? "null");
    bytes = utf8Length(text);
  } catch (thrown) {
    if (!(thrown instanceof TooLong)) return '"[unreadable]"';
    text = hideSecrets(thrown.text);
    bytes = thrown.chars;
  }
  if (bytes <= RESULT_BYTES_MAX) return text;
  const preview = `${wellFormed(text.slice(0, PREVIEW_LENGTH))}…`;
  return JSON.stringify({ $truncated: true, bytes, preview });
}

/** Returns the JSON text of an item's value, with the strictness of an input and the size limit of a result. */
export function encodeItem(key: string, value: unknown): string {
  const refuse: Refuse = (oddity, { segments }) => {
    const cause = oddity.kind === "unreadable" ? { cause: oddity.cause } : undefined;
    throw new ItemNotJsonError(key, pathText("value", segments), inputReason(oddity), cause);
  };
  try {
    return write(value, { refuse, charsMax: RESULT_BYTES_MAX });
  } catch (thrown) {
    if (!(thrown instanceof InputTooLargeError)) throw thrown;
    throw new ItemTooLargeError(key, thrown.bytes, thrown.limit);
  }
}

/** The same for the value of a step; nothing becomes null. */
export function encodeStep(name: string, value: unknown): string {
  if (value === undefined) return "null";
  const refuse: Refuse = (oddity, { segments }) => {
    const cause = oddity.kind === "unreadable" ? { cause: oddity.cause } : undefined;
    throw new StepNotJsonError(name, pathText("value", segments), inputReason(oddity), cause);
  };
  try {
    return write(value, { refuse, charsMax: RESULT_BYTES_MAX });
  } catch (thrown) {
    if (!(thrown instanceof InputTooLargeError)) throw thrown;
    throw new ResultTooLargeError(name, thrown.bytes, thrown.limit);
  }
}

/** Returns the same JSON with the members of every object sorted, so that equal values give equal text. */
export function canonicalJson(text: string): string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new InputNotJsonError("input", "is not JSON", { cause });
  }
  const charsMax = Number.POSITIVE_INFINITY;
  return write(value, { refuse: refuseInput, charsMax, isSorted: true });
}

/** Whether two results are the same value, in any order of their members. Null stands for a missing result. */
export function isSameResult(one: string | null, other: string | null): boolean {
  const [a, b] = [one ?? "null", other ?? "null"];
  return a === b || canonicalJson(a) === canonicalJson(b);
}

/**
 * Returns the text as every database can store it: without NUL (PostgreSQL refuses it), without lone
 * surrogates (not UTF-8), at most `maxLength` UTF-16 units, with "… (N more)" at the cut. Known secrets are hidden
 * before the cut, because the cut could leave half of one.
 */
export function storableText(whole: string, maxLength: number): string {
  const text = hideSecrets(whole);
  if (text.length <= maxLength) return wellFormed(text).replaceAll("\0", "");
  // Reserve room for the mark with the largest number that it could show.
  const markLength = `… (${text.length} more)`.length;
  const kept = trimHalfPair(text.slice(0, Math.max(0, maxLength - markLength)));
  const mark = `… (${text.length - kept.length} more)`;
  const cut = wellFormed(kept).replaceAll("\0", "");
  return maxLength < markLength ? mark.slice(0, Math.max(0, maxLength)) : cut + mark;
}

/** C1 controls steer terminals, and direction marks reverse the order of shown text. JSON does not escape them. */
const STEERING = /[\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/** Returns JSON text that is safe for a terminal: the same value, with controls and direction marks escaped. */
export function shownJson(json: string): string {
  return json.replace(STEERING, (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const BRACE = 0x7b;
const BRACE_END = 0x7d;
const BRACKET = 0x5b;
const BRACKET_END = 0x5d;

/** Whether JSON text is nested deeper than this. It scans the text, because parsing such a value would recurse. */
export function isDeeperThan(text: string, depthMax: number): boolean {
  let depth = 0;
  let isInText = false;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (isInText) {
      if (unit === BACKSLASH) i++;
      else if (unit === QUOTE) isInText = false;
    } else if (unit === QUOTE) isInText = true;
    else if (unit === BRACE || unit === BRACKET) {
      depth += 1;
      if (depth > depthMax) return true;
    } else if (unit === BRACE_END || unit === BRACKET_END) depth -= 1;
  }
  return false;
}

/**
 * Reads a stored value. A text that is not JSON, or that is deeper than any value this library stores, becomes a
 * marker with its beginning, so that it does not fail the list that contains it.
 */
export function readStored(text: string): unknown {
  // A shorter text has no room for that many brackets.
  const isDeep = text.length > 2 * STORED_DEPTH_MAX && isDeeperThan(text, STORED_DEPTH_MAX);
  if (!isDeep) {
    try {
      return JSON.parse(text) as unknown;
    } catch {}
  }
  const preview = `${wellFormed(text.slice(0, PREVIEW_LENGTH))}${text.length > PREVIEW_LENGTH ? "…" : ""}`;
  return { $unreadable: true, bytes: utf8Length(text), preview };
}

/** Counts the bytes of the text in UTF-8. A lone surrogate counts as U+FFFD, which replaces it. */
export function utf8Length(text: string): number {
  let bytes = text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80) continue;
    bytes += unit < 0x800 ? 1 : 2;
    const isPair = isHigh(unit) && isLow(text.charCodeAt(i + 1));
    if (isPair) i++; // A pair has four bytes; `bytes` already counts one for the second unit.
  }
  return bytes;
}

function isHigh(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLow(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, "\ufffd"); // With the u flag only lone ones match.
}

function trimHalfPair(text: string): string {
  return isHigh(text.charCodeAt(text.length - 1)) ? text.slice(0, -1) : text;
}

/** Something that JSON cannot carry unchanged. */
type Oddity =
  | { readonly kind: "circular" | "function" | "symbol" | "deep" | "invalid date" }
  | { readonly kind: "bigint"; readonly value: bigint }
  | { readonly kind: "number"; readonly value: number }
  | { readonly kind: "class"; readonly name: string; readonly advice: string }
  | { readonly kind: "unreadable"; readonly what: string; readonly cause: unknown };

type Place = { readonly segments: readonly PathSegment[]; readonly isMember: boolean };

/** Returns the JSON text to write instead, or `undefined` to leave the member out; or throws. */
type Refuse = (oddity: Oddity, place: Place) => string | undefined;

function refuseInput(oddity: Oddity, { segments }: Place): never {
  const path = pathText("input", segments);
  const cause = oddity.kind === "unreadable" ? { cause: oddity.cause } : undefined;
  throw new InputNotJsonError(path, inputReason(oddity), cause);
}

function inputReason(oddity: Oddity): string {
  switch (oddity.kind) {
    case "circular":
      return "refers to something that contains it (circular), which JSON cannot carry";
    case "deep":
      return `is nested deeper than ${JSON_DEPTH_MAX} levels`;
    case "bigint":
      return "is a BigInt, which JSON cannot carry; give a string or a number";
    case "number":
      return `is ${oddity.value}, which JSON would turn into null; give a finite number or null`;
    case "invalid date":
      return "is an invalid Date, which JSON would turn into null";
    case "class":
      return `is a ${oddity.name}, whose content JSON would lose; ${oddity.advice}`;
    case "unreadable":
      return `cannot be read: ${oddity.what} threw`;
    default:
      return `is a ${oddity.kind}, which JSON cannot carry`;
  }
}

function markResult(oddity: Oddity, { isMember }: Place): string | undefined {
  switch (oddity.kind) {
    case "bigint":
      return `"${oddity.value}"`;
    case "number":
    case "invalid date":
      return "null";
    case "function":
    case "symbol":
      return isMember ? undefined : `"[${oddity.kind}]"`;
    case "deep":
      return '"[too deep]"';
    case "class":
      return `"[${oddity.name}]"`;
    default:
      return `"[${oddity.kind}]"`;
  }
}

type WriterOptions = {
  readonly refuse: Refuse;
  readonly charsMax: number;
  readonly isSorted?: boolean;
};

function write(value: unknown, options: WriterOptions): string {
  try {
    const text = new Writer(options).root(value) ?? "null";
    // A unit has at most three bytes, so short texts need no counting.
    const bytes = text.length * 3 <= options.charsMax ? 0 : utf8Length(text);
    if (bytes > options.charsMax) throw new InputTooLargeError(bytes, options.charsMax);
    return text;
  } catch (thrown) {
    if (thrown instanceof TooLong) throw new InputTooLargeError(thrown.chars, options.charsMax);
    throw thrown;
  }
}

/** Ends the walk when the text is too long. Never leaves this file. */
class TooLong {
  constructor(
    readonly text: string,
    readonly chars: number,
  ) {}
}

/** Writes one value like JSON.stringify, but calls `refuse` for everything odd. */
class Writer {
  readonly #options: WriterOptions;
  readonly #segments: PathSegment[] = [];
  readonly #ancestors: object[] = [];
  #text = "";

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  /** Returns the text, or undefined where JSON has none (for undefined). */
  root(value: unknown): string | undefined {
    const isWritten = this.#value(value, "", "", false);
    return isWritten ? this.#text : undefined;
  }

  /** Writes `before` and the value and returns true, or writes nothing if the value must be left out. */
  #value(given: unknown, before: string, key: string, isMember: boolean): boolean {
    const value = needsUnwrapping(given) ? this.#unwrap(given, key) : given;
    if (Odd.is(value)) return this.#odd(value.oddity, before, isMember);
    switch (typeof value) {
      case "string":
        this.#string(value, before);
        return true;
      case "number":
        if (!Number.isFinite(value)) return this.#odd({ kind: "number", value }, before, isMember);
        this.#write(`${before}${Object.is(value, -0) ? 0 : value}`);
        return true;
      case "boolean":
        this.#write(before + value);
        return true;
      case "bigint":
        return this.#odd({ kind: "bigint", value }, before, isMember);
      case "undefined":
        return false;
      case "object":
        if (value !== null) return this.#container(value, before, isMember);
        this.#write(`${before}null`);
        return true;
      default:
        return this.#odd({ kind: typeof value as "function" | "symbol" }, before, isMember);
    }
  }

  #container(value: object, before: string, isMember: boolean): boolean {
    if (this.#ancestors.includes(value)) return this.#odd({ kind: "circular" }, before, isMember);
    if (this.#ancestors.length >= JSON_DEPTH_MAX) {
      return this.#odd({ kind: "deep" }, before, isMember);
    }
    const shape = shapeOf(value);
    if (Odd.is(shape)) return this.#odd(shape.oddity, before, isMember);
    this.#ancestors.push(value);
    this.#write(before);
    if (shape.isArray) this.#array(value as readonly unknown[], shape.length);
    else this.#object(value as Readonly<Record<string, unknown>>, shape.keys);
    this.#ancestors.pop();
    return true;
  }

  #array(array: readonly unknown[], length: number): void {
    this.#write("[");
    for (let index = 0; index < length; index++) {
      const before = index === 0 ? "" : ",";
      this.#segments.push(index);
      const isWritten = this.#value(this.#read(array, index), before, `${index}`, false);
      if (!isWritten) this.#write(`${before}null`);
      this.#segments.pop();
    }
    this.#write("]");
  }

  #object(object: Readonly<Record<string, unknown>>, keys: readonly string[]): void {
    this.#write("{");
    let comma = "";
    for (const key of this.#options.isSorted ? [...keys].sort() : keys) {
      this.#segments.push(key);
      this.#guard(key.length);
      const before = `${comma}${JSON.stringify(key)}:`;
      if (this.#value(this.#read(object, key), before, key, true)) comma = ",";
      this.#segments.pop();
    }
    this.#write("}");
  }

  #read(container: object, key: string | number): unknown {
    try {
      return (container as Readonly<Record<string | number, unknown>>)[key];
    } catch (cause) {
      return new Odd({ kind: "unreadable", what: "its getter", cause });
    }
  }

  /** Applies toJSON and unboxes primitives, as JSON.stringify does first. */
  #unwrap(given: object | bigint, key: string): unknown {
    if (Odd.is(given)) return given;
    try {
      const toJson: unknown = (given as { readonly toJSON?: unknown }).toJSON;
      if (typeof toJson === "function") {
        if (given instanceof Date && Number.isNaN(given.getTime())) {
          return new Odd({ kind: "invalid date" });
        }
        return unbox(toJson.call(given, key));
      }
      return unbox(given);
    } catch (cause) {
      return new Odd({ kind: "unreadable", what: "its toJSON or a getter", cause });
    }
  }

  #odd(oddity: Oddity, before: string, isMember: boolean): boolean {
    const text = this.#options.refuse(oddity, { segments: this.#segments, isMember });
    if (text === undefined) return false;
    this.#write(before + text);
    return true;
  }

  #string(value: string, before: string): void {
    this.#guard(value.length, value);
    this.#write(before + JSON.stringify(value));
  }

  #write(text: string): void {
    this.#text += text;
    this.#guard(0);
  }

  /** Stops before a huge text is copied, and keeps a part of it for the preview. */
  #guard(moreChars: number, more = ""): void {
    const chars = this.#text.length + moreChars;
    if (chars <= this.#options.charsMax) return;
    const start = this.#text.slice(0, PREVIEW_LENGTH);
    throw new TooLong(start + more.slice(0, PREVIEW_LENGTH - start.length), chars);
  }
}

/** A finding that takes the place of a value. It is a class of its own, so that no user's value can be one. */
class Odd {
  readonly #isOdd = true;
  constructor(readonly oddity: Oddity) {}

  // Not instanceof, which asks a Proxy for its prototype: a hostile Proxy throws.
  static is(value: unknown): value is Odd {
    return typeof value === "object" && value !== null && #isOdd in value;
  }
}

function needsUnwrapping(value: unknown): value is object | bigint {
  return (typeof value === "object" && value !== null) || typeof value === "bigint";
}

function unbox(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Number) return Number(value);
  if (value instanceof String) return String(value);
  if (value instanceof Boolean || value instanceof BigInt) return value.valueOf();
  return value;
}

type Shape =
  | { readonly isArray: true; readonly length: number }
  | { readonly isArray: false; readonly keys: readonly string[] };

// A Proxy may throw on any of these accesses, so one try block guards them all.
function shapeOf(value: object): Shape | Odd {
  try {
    if (Array.isArray(value)) return { isArray: true, length: value.length };
    const lossy = lossyClassOf(value);
    if (lossy !== undefined) return new Odd({ kind: "class", ...lossy });
    return { isArray: false, keys: Object.keys(value) };
  } catch (cause) {
    return new Odd({ kind: "unreadable", what: "listing its members", cause });
  }
}

// JSON.stringify silently writes {} for these: the classic lost Map, the forgotten await.
function lossyClassOf(value: object): { name: string; advice: string } | undefined {
  if (value instanceof Map) return { name: "Map", advice: "give Object.fromEntries(map)" };
  if (value instanceof Set) return { name: "Set", advice: "give [...set]" };
  if (value instanceof Promise) return { name: "Promise", advice: "await it first" };
  return undefined;
}
