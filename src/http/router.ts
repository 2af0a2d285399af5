// Which of the routes a path means. A word in a path goes before a parameter, and a path that is known but not by this
// method says by which ones it is.

export type Found<T> =
  | { readonly value: T; readonly params: Readonly<Record<string, string>> }
  | { readonly methods: readonly string[] }
  | null;

type Entry<T> = {
  readonly method: string;
  /** A word, or the name of a parameter in braces. */
  readonly segments: readonly string[];
  readonly value: T;
};

export class Router<T> {
  /** By the number of segments; words before parameters. */
  readonly #entries = new Map<number, Entry<T>[]>();

  /** Parameters in braces: `/api/runs/{id}`. */
  add(method: string, path: string, value: T): void {
    const segments = path.split("/");
    const entries = this.#entries.get(segments.length) ?? [];
    entries.push({ method, segments, value });
    entries.sort((a, b) => parametersOf(a) - parametersOf(b));
    this.#entries.set(segments.length, entries);
  }

  find(method: string, path: string): Found<T> {
    const segments = path.split("/");
    const given = path.includes("%") ? segments.map(decoded) : segments;
    const methods = new Set<string>();
    for (const entry of this.#entries.get(given.length) ?? []) {
      if (!fits(entry.segments, given)) continue;
      if (entry.method === method)
        return { value: entry.value, params: paramsOf(entry.segments, given) };
      methods.add(entry.method);
    }
    return methods.size === 0 ? null : { methods: [...methods] };
  }
}

function fits(wanted: readonly string[], given: readonly string[]): boolean {
  // From the end: the beginnings are the same for nearly all.
  for (let at = wanted.length - 1; at >= 0; at -= 1) {
    const word = wanted[at] as string;
    if (isParameter(word) ? given[at] === "" : given[at] !== word) return false;
  }
  return true;
}

function paramsOf(wanted: readonly string[], given: readonly string[]): Record<string, string> {
  const params: Record<string, string> = {};
  for (const [at, word] of wanted.entries())
    if (isParameter(word)) params[word.slice(1, -1)] = given[at] as string;
  return params;
}

function isParameter(word: string): boolean {
  return word.charCodeAt(0) === BRACE;
}

const BRACE = 0x7b;

function parametersOf(entry: Entry<unknown>): number {
  return entry.segments.filter(isParameter).length;
}

/** What is no right escape stands for itself. */
function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
