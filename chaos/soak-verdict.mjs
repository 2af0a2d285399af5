// Computes the verdict of a soak from the samples, the windows and the violations. Pure.

/** The largest ratio of the end to the beginning for a flat value. */
const FLAT = 1.05;
const BOUNDED = 1.2;
const DRIFT = 0.2;

/**
 * @typedef {import("./soak-measures.mjs").Measured & { atMs: number, load: number }} Sample
 * @typedef {{ atMs: number, heapUsed: number, rss: number, external: number, cpuMs: number }} Memory
 * @typedef {{ p50: number, p99: number, count: number }} Spread
 * @typedef {object} Window
 * @property {number} atMs its end, since the beginning
 * @property {Spread} run from the call of enqueue to the commit of the outcome, first tries of `quick`
 * @property {Spread} all the same with those whose worker was killed
 * @property {Spread} bare commits of one row
 * @property {number} ratio of both p99
 */

/** @param {number[]} values @param {number} share */
export function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0;
}

/** @param {number[]} values @returns {Spread} */
export function spreadOf(values) {
  const rounded = (/** @type {number} */ share) => Number(quantile(values, share).toFixed(2));
  return { p50: rounded(0.5), p99: rounded(0.99), count: values.length };
}

/**
 * The last three quarters are judged for flatness: 90 minutes of two hours.
 * @param {{ seconds: number, samples: Sample[], memory: Record<string, Memory[]>, windows: Window[],
 *   violations: readonly { check: string }[] }} params
 */
export function verdictOf({ seconds, samples, memory, windows, violations }) {
  const endMs = seconds * 1_000;
  const heaps = Object.fromEntries(
    Object.entries(memory).map(([name, notes]) => {
      const late = notes.filter(({ atMs }) => atMs >= endMs / 4 && atMs <= endMs);
      const part = Math.ceil(late.length / 6);
      const of = (/** @type {Memory[]} */ some) =>
        quantile(
          some.map(({ heapUsed }) => heapUsed),
          0.5,
        );
      const [first, last] = [of(late.slice(0, part)), of(late.slice(-part))];
      return [name, { firstBytes: first, lastBytes: last, growth: share(last, first) }];
    }),
  );
  const most = (
    /** @type {"historyBytes" | "walBytes" | "otherBytes"} */ of,
    /** @type {number} */ from,
    /** @type {number} */ to,
  ) =>
    Math.max(
      0,
      ...samples
        .filter(({ atMs }) => atMs >= endMs * from && atMs <= endMs * to)
        .map((sample) => sample[of]),
    );
  const bounds = Object.fromEntries(
    /** @type {const} */ (["historyBytes", "otherBytes", "walBytes"]).map((of) => {
      const [middle, last] = [most(of, 1 / 3, 2 / 3), most(of, 2 / 3, 1)];
      return [of, { middleMax: middle, lastMax: last, growth: share(last, middle) }];
    }),
  );
  const ratios = (/** @type {Window[]} */ some) =>
    quantile(
      some.map(({ ratio }) => ratio),
      0.5,
    );
  const third = Math.floor(windows.length / 3);
  const [first, last] = [ratios(windows.slice(0, third)), ratios(windows.slice(-third))];
  const broken = (/** @type {string[]} */ checks) =>
    violations.filter(({ check }) => checks.includes(check)).length;
  return {
    isHeapFlat: Object.values(heaps).every(({ growth }) => growth <= FLAT),
    heaps,
    isBounded: Object.values(bounds).every(({ growth }) => growth <= BOUNDED),
    bounds,
    isLatencySteady: Math.abs(share(last, first) - 1) <= DRIFT,
    latency: { firstRatio: first, lastRatio: last, growth: share(last, first) },
    lost: broken(["S11", "S13", "S16"]),
    doubled: broken(["E", "S9", "S4", "S6", "S1"]),
    stuck: broken(["L"]),
    violations: violations.length,
  };
}

/** @param {number} value @param {number} of */
function share(value, of) {
  return of === 0 ? (value === 0 ? 1 : Number.POSITIVE_INFINITY) : Number((value / of).toFixed(3));
}
