// Hides known secrets in every text that is stored or logged: secrets of the configuration by their value, callback
// tokens and secrets of named keys by their prefix. Inputs and values of items are left as they are, because handlers
// read them again.
// The list belongs to the process, not to an instance: a secret of one instance is a secret for all. It is kept under a
// registered symbol, because a configuration file may import another copy of this package.

const HIDDEN = "***";
const MARKED = /hf(?:cb1|k1)_\w{1,256}/g;
const CALLBACK_TOKEN_START = "hfcb1_";
/** Every secret of a named key begins with this. */
export const KEY_START = "hfk1_";
/** A shorter secret would hide ordinary words ("postgres", "application"). */
const LENGTH_MIN = 12;
/** Many instances in one process must not make every line slow. */
const COUNT_MAX = 500;
const KEY = Symbol.for("holdfast.known-secrets");

/** From now on hides these values in every text. Values that are as short as ordinary words are ignored. */
export function rememberSecrets(values: readonly string[]): void {
  const known = knownSecrets();
  for (const value of values) {
    if (value.length < LENGTH_MIN) continue;
    for (const form of formsOf(value)) {
      known.delete(form);
      known.add(form);
    }
  }
  for (const oldest of known) {
    if (known.size <= COUNT_MAX) return;
    known.delete(oldest);
  }
}

/** Returns the text without known secrets, callback tokens and secrets of named keys. Takes time linear in the text's length. */
export function hideSecrets(text: string): string {
  const isMarked = text.includes(CALLBACK_TOKEN_START) || text.includes(KEY_START);
  const shown = isMarked ? text.replace(MARKED, HIDDEN) : text;
  return hideValues(shown, knownSecrets());
}

/** Returns the text without these values. */
export function hideValues(text: string, values: Iterable<string>): string {
  let shown = text;
  for (const value of values) if (shown.includes(value)) shown = shown.replaceAll(value, HIDDEN);
  return shown;
}

/** Hides secrets in the text members of a log line. */
export function hideSecretsIn<Fields extends object>(fields: Fields): Fields {
  const hidden: Record<string, string> = {};
  for (const [name, value] of Object.entries(fields)) {
    const shown = typeof value === "string" ? hideSecrets(value) : value;
    if (shown !== value) hidden[name] = shown;
  }
  return { ...fields, ...hidden };
}

function knownSecrets(): Set<string> {
  const place = globalThis as { [KEY]?: Set<string> };
  place[KEY] ??= new Set();
  return place[KEY];
}

/** Returns a value as it is, as it appears in JSON, and as it appears in a URL. */
export function formsOf(value: string): ReadonlySet<string> {
  return new Set([value, JSON.stringify(value).slice(1, -1), encoded(value)]);
}

function encoded(value: string): string {
  try {
    return encodeURIComponent(value);
  } catch {
    // A lone surrogate: no URL can carry it.
    return value;
  }
}

/** Headers whose values are ordinary words. */
const PLAIN_HEADERS: ReadonlySet<string> = new Set([
  "accept",
  "accept-encoding",
  "accept-language",
  "cache-control",
  "content-type",
  "prefer",
  "user-agent",
]);

/** Returns the values of headers that a configuration sends, whole and without their scheme ("Bearer", "Basic"). */
export function headerSecrets(headers: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(headers)
    .filter(([name]) => !PLAIN_HEADERS.has(name.toLowerCase()))
    .flatMap(([, value]) => [value, ...value.split(/\s+/).slice(1)]);
}
