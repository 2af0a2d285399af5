// Makes and reads run ids: UUIDv7 (RFC 9562), so that ids sort by the time at which they were made.
// Pure: callers give the time and the random bytes. No decision of the database depends on this order; it only keeps
// index pages warm and lists readable.

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));
const COUNTER_MAX = 0xfff;
const TIME_MAX = 2 ** 48 - 1;
const POOL_BYTES = 4_096;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Makes a UUIDv7 of that millisecond from 10 random bytes. */
export function uuidv7(nowMs: number, randomBytes: Uint8Array): string {
  if (randomBytes.length < 10) throw new RangeError("uuidv7 needs 10 random bytes.");
  const counter = (((randomBytes[0] ?? 0) << 8) | (randomBytes[1] ?? 0)) & COUNTER_MAX;
  return `${timeText(clampTime(nowMs))}${counterText(counter)}${randomText(randomBytes, 2)}`;
}

/**
 * Makes UUIDv7s that always increase within the process, even when the clock steps back or stands still:
 * rand_a counts within a millisecond, and a full count borrows the next millisecond.
 */
export class UuidV7Source {
  readonly #now: () => number;
  readonly #fill: (bytes: Uint8Array) => void;
  readonly #pool = new Uint8Array(POOL_BYTES);
  #used = POOL_BYTES;
  #timeMs = -1;
  #timeText = "";
  #counter = 0;

  constructor(now: () => number, fill: (bytes: Uint8Array) => void) {
    this.#now = now;
    this.#fill = fill;
  }

  next(): string {
    const nowMs = clampTime(this.#now());
    if (nowMs > this.#timeMs) this.#startMillisecond(nowMs);
    else if (this.#counter < COUNTER_MAX) this.#counter++;
    else this.#startMillisecond(this.#timeMs + 1);
    const from = this.#take(8);
    return `${this.#timeText}${counterText(this.#counter)}${randomText(this.#pool, from)}`;
  }

  // Half of the range stays free for counting: at least 2,048 ids before a millisecond is borrowed.
  #startMillisecond(timeMs: number): void {
    const from = this.#take(2);
    this.#timeMs = timeMs;
    this.#timeText = timeText(timeMs);
    this.#counter = (((this.#pool[from] ?? 0) << 8) | (this.#pool[from + 1] ?? 0)) & 0x7ff;
  }

  /** Reserves bytes of the pool that no id has used yet. */
  #take(count: number): number {
    if (this.#used + count > POOL_BYTES) {
      this.#fill(this.#pool);
      this.#used = 0;
    }
    const from = this.#used;
    this.#used += count;
    return from;
  }
}

/** Whether the text is a UUID of any version, in the usual form with hyphens. */
export function isUuid(text: unknown): text is string {
  return typeof text === "string" && text.length === 36 && UUID.test(text);
}

export const FRAGMENT_LENGTH_MIN = 6;
const FRAGMENT = /^[0-9a-f]{6,31}$/;

/** Returns the digits of the start or the end of an id, with or without hyphens; null if the text can be neither. */
export function idFragment(text: unknown): string | null {
  if (typeof text !== "string" || text.length > 36) return null;
  const digits = text.replaceAll("-", "").toLowerCase();
  return FRAGMENT.test(digits) ? digits : null;
}

/** How many ids the error about an ambiguous fragment names. */
const CANDIDATES_MAX = 10;

/**
 * Returns the id as it is stored, given whole or by six characters or more of its beginning or its end. Null: the text can be
 * no id, or no stored id matches. Throws what `ambiguous` makes if several match.
 */
export async function findId(
  id: string,
  params: {
    readonly withDigits: (asked: {
      readonly digits: string;
      readonly limit: number;
    }) => Promise<readonly string[]>;
    readonly ambiguous: (candidates: readonly string[], hasMore: boolean) => Error;
  },
): Promise<string | null> {
  if (isUuid(id)) return id.toLowerCase();
  const digits = idFragment(id);
  if (digits === null) return null;
  const found = await params.withDigits({ digits, limit: CANDIDATES_MAX + 1 });
  if (found.length > 1)
    throw params.ambiguous(found.slice(0, CANDIDATES_MAX), found.length > CANDIDATES_MAX);
  return found[0] ?? null;
}

/** Returns the smallest and the largest id that start with these digits. */
export function idsFrom(digits: string): { readonly first: string; readonly last: string } {
  const whole = (fill: string) =>
    digits.padEnd(32, fill).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  return { first: whole("0"), last: whole("f") };
}

/** Returns the millisecond in which a UUIDv7 was made; undefined for any other text. */
export function uuidTimeMs(id: string): number | undefined {
  if (!isUuid(id) || id[14] !== "7") return undefined;
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

/** Returns the smallest UUIDv7 of a millisecond. Ids that are made from then on sort after it. */
export function firstIdAt(ms: number): string {
  return `${timeText(clampTime(ms))}000-8000-000000000000`;
}

// A broken clock (NaN, Infinity) must not make unreadable ids. Its time counts as 0, so that a source continues from
// its last good millisecond.
function clampTime(ms: number): number {
  return ms >= 0 && ms < TIME_MAX ? Math.floor(ms) : 0;
}

function timeText(timeMs: number): string {
  const hex = timeMs.toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7`;
}

function counterText(counter: number): string {
  return `${(counter >> 8).toString(16)}${HEX[counter & 0xff]}-`;
}

function randomText(bytes: Uint8Array, from: number): string {
  // The two top bits of the first byte are the variant, 0b10.
  return (
    `${HEX[((bytes[from] ?? 0) & 0x3f) | 0x80]}${HEX[bytes[from + 1] ?? 0]}-` +
    `${HEX[bytes[from + 2] ?? 0]}${HEX[bytes[from + 3] ?? 0]}${HEX[bytes[from + 4] ?? 0]}` +
    `${HEX[bytes[from + 5] ?? 0]}${HEX[bytes[from + 6] ?? 0]}${HEX[bytes[from + 7] ?? 0]}`
  );
}
