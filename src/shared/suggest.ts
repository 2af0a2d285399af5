// Finds the known word nearest to a mistyped one ("Did you mean …?"), and names unknown members of option objects.
// Pure; its work is bounded for any input.

/** One mistake in a configuration: the field, and a message that says what would be right. */
export type Problem = { readonly field: string; readonly message: string };

const WORD_LENGTH_MAX = 64;
const KNOWN_COUNT_MAX = 1_000;
const LISTED_COUNT_MAX = 20;
const PROBLEM_COUNT_MAX = 20;

/** Returns the known word that the user probably meant, if one is near enough. */
export function suggest(word: string, known: readonly string[]): string | undefined {
  if (word === "" || word.length > WORD_LENGTH_MAX) return undefined;
  const wanted = word.toLowerCase();
  // A third of the letters may be wrong, at most three. Beyond that a guess would be noise.
  let nearest: string | undefined;
  let best = Math.min(3, Math.max(1, Math.floor(word.length / 3))) + 1;
  for (const candidate of known.slice(0, KNOWN_COUNT_MAX)) {
    if (Math.abs(candidate.length - word.length) >= best) continue;
    const distance = editDistance(wanted, candidate.toLowerCase());
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

/** Counts the edits (insert, delete, replace, swap of neighbours) that turn one word into the other. */
function editDistance(from: string, to: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, j) => j);
  for (let i = 1; i <= from.length; i++) {
    const row = [i];
    for (let j = 1; j <= to.length; j++) {
      const isSame = from[i - 1] === to[j - 1];
      let cost = Math.min(at(last, j) + 1, at(row, j - 1) + 1, at(last, j - 1) + (isSame ? 0 : 1));
      const isSwap = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      if (isSwap) cost = Math.min(cost, at(beforeLast, j - 2) + 1);
      row.push(cost);
    }
    beforeLast = last;
    last = row;
  }
  return at(last, to.length);
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Number.POSITIVE_INFINITY;
}

/** Returns a problem for every own member of `value` that is not in `known`. */
export function refuseUnknownMembers(
  value: object,
  known: readonly string[],
  field: string,
): Problem[] {
  return Object.keys(value)
    .filter((member) => !known.includes(member))
    .slice(0, PROBLEM_COUNT_MAX)
    .map((member) => {
      const meant = suggest(member, known);
      const hint = meant === undefined ? "" : ` Did you mean "${meant}"?`;
      return {
        field: `${field}.${quoteShort(member)}`,
        message: `is not known.${hint} Known: ${listShort(known)}.`,
      };
    });
}

/** Returns a plain word as it is, and any other text quoted and cut, so that it cannot flood a message. */
export function quoteShort(word: string): string {
  if (/^[\w.:-]{1,64}$/.test(word)) return word;
  const cut = word.length > WORD_LENGTH_MAX ? `${word.slice(0, WORD_LENGTH_MAX)}…` : word;
  return JSON.stringify(cut);
}

/** Returns the first twenty words, separated by commas, and the number of the others. */
export function listShort(words: readonly string[]): string {
  const listed = words.slice(0, LISTED_COUNT_MAX).map(quoteShort).join(", ");
  const restCount = words.length - LISTED_COUNT_MAX;
  return restCount > 0 ? `${listed} and ${restCount} more` : listed;
}
