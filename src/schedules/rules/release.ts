// Which of two definitions in code is the newer one: by release where both compare, else by which was
// first seen later. Pure.

type Seen = { readonly hash: string; readonly firstSeenAt: number };
type Declared = { readonly hash: string; readonly release: string | null };

/** Whether the candidate may take the place of the current definition. */
export function isNewerDefinition(params: {
  readonly candidate: Declared;
  readonly current: Declared;
  readonly seen: readonly Seen[];
}): boolean {
  const { candidate, current, seen } = params;
  const order = compareReleases(candidate.release, current.release);
  if (order !== null && order !== 0) return order > 0;
  const seenAt = (hash: string) => seen.find((each) => each.hash === hash)?.firstSeenAt;
  const candidateAt = seenAt(candidate.hash);
  if (candidateAt === undefined) return true;
  return candidateAt > (seenAt(current.hash) ?? Number.NEGATIVE_INFINITY);
}

const NUMBER = /^\d{1,15}$/;
const SEMVER = /^v?(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?$/;

/** Negative, zero or positive as numbers or as semantic versions; null where they do not compare. */
export function compareReleases(left: string | null, right: string | null): number | null {
  if (left === null || right === null) return null;
  if (NUMBER.test(left) && NUMBER.test(right)) return Number(left) - Number(right);
  const [, ...one] = SEMVER.exec(left) ?? [];
  const [, ...other] = SEMVER.exec(right) ?? [];
  if (one.length === 0 || other.length === 0) return null;
  for (const part of [0, 1, 2]) {
    const difference = Number(one[part]) - Number(other[part]);
    if (difference !== 0) return difference;
  }
  return comparePrereleases(one[3], other[3]);
}

/** A release is newer than its own prereleases; numbers in them compare as numbers. */
function comparePrereleases(left: string | undefined, right: string | undefined): number {
  if (left === undefined || right === undefined)
    return Number(right !== undefined) - Number(left !== undefined);
  const one = left.split(".");
  const other = right.split(".");
  for (let part = 0; part < Math.max(one.length, other.length); part += 1) {
    const a = one[part];
    const b = other[part];
    if (a === undefined || b === undefined)
      return Number(b === undefined) - Number(a === undefined);
    if (a === b) continue;
    const areNumbers = NUMBER.test(a) && NUMBER.test(b);
    if (areNumbers) return Number(a) - Number(b);
    if (NUMBER.test(a) !== NUMBER.test(b)) return NUMBER.test(a) ? -1 : 1;
    return a < b ? -1 : 1;
  }
  return 0;
}
