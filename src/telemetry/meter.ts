// What counts in this process: counters and histograms with labels. Cheap enough to be called for every
// run, and bounded: beyond so many sets of label values, new ones are counted together as `other`.

import type { HistogramValue, Labels, Sample } from "./exposition.js";

/** How many sets of label values one metric keeps. */
export const SERIES_MAX = 500;
/** What stands for every value beyond those. */
export const OTHER = "other";

const SEPARATOR = "\u0000";

/** Values by their labels, in the order in which they came. */
class Series<Value> {
  readonly #byKey = new Map<string, { readonly values: readonly string[]; readonly held: Value }>();
  readonly #names: readonly string[];
  readonly #isOpen: readonly boolean[];
  readonly #make: () => Value;

  /** Labels whose name ends with `*` take values that users make up, and are bounded. */
  constructor(names: readonly string[], make: () => Value) {
    this.#names = names.map((name) => name.replace("*", ""));
    this.#isOpen = names.map((name) => name.endsWith("*"));
    this.#make = make;
  }

  of(values: readonly string[]): Value {
    const key = values.length === 1 ? (values[0] as string) : values.join(SEPARATOR);
    const found = this.#byKey.get(key);
    if (found) return found.held;
    if (this.#byKey.size >= SERIES_MAX) {
      const others = values.map((value, at) => (this.#isOpen[at] ? OTHER : value));
      if (others.join(SEPARATOR) !== key) return this.of(others);
    }
    const held = this.#make();
    this.#byKey.set(key, { values, held });
    return held;
  }

  samples(toValue: (held: Value) => number | HistogramValue): Sample[] {
    return [...this.#byKey.values()].map(({ values, held }) => ({
      labels: values.map((value, at) => [this.#names[at] ?? "", value]) satisfies Labels,
      value: toValue(held),
    }));
  }
}

export class Counter {
  readonly #series: Series<{ total: number }>;

  constructor(labels: readonly string[] = []) {
    this.#series = new Series(labels, () => ({ total: 0 }));
  }

  add(values: readonly string[], by = 1): void {
    this.#series.of(values).total += by;
  }

  samples(): Sample[] {
    return this.#series.samples(({ total }) => total);
  }
}

type Observed = { readonly counts: number[]; count: number; sum: number };

export class Histogram {
  readonly #series: Series<Observed>;
  readonly #bounds: readonly number[];

  constructor(bounds: readonly number[], labels: readonly string[] = []) {
    this.#bounds = bounds;
    this.#series = new Series(labels, () => ({ counts: bounds.map(() => 0), count: 0, sum: 0 }));
  }

  observe(values: readonly string[], value: number): void {
    const observed = this.#series.of(values);
    observed.count += 1;
    observed.sum += value;
    for (let at = 0; at < this.#bounds.length; at += 1) {
      if (value > (this.#bounds[at] as number)) continue;
      observed.counts[at] = (observed.counts[at] as number) + 1;
      return;
    }
  }

  samples(): Sample[] {
    const bounds = this.#bounds;
    return this.#series.samples(({ counts, count, sum }) => ({
      bounds,
      counts: [...counts],
      count,
      sum,
    }));
  }
}
