// Draws random numbers from a seed: the same text draws the same numbers.

export class Draw {
  #state;

  /** @param {string} seed any text */
  constructor(seed) {
    this.#state = hash(seed);
  }

  /** Returns a number in [0, 1). */
  next() {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /**
   * Returns a whole number; both bounds are included.
   * @param {number} from
   * @param {number} to
   */
  int(from, to) {
    return from + Math.floor(this.next() * (to - from + 1));
  }

  /** @param {number} chance */
  isTrue(chance) {
    return this.next() < chance;
  }

  /**
   * Returns a name with the probability of its weight.
   * @template {string} Name
   * @param {Readonly<Record<Name, number>>} weights
   * @returns {Name}
   */
  weighted(weights) {
    const entries = /** @type {[Name, number][]} */ (Object.entries(weights));
    let left = this.next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [name, weight] of entries) {
      left -= weight;
      if (left < 0) return name;
    }
    return /** @type {[Name, number]} */ (entries.at(-1))[0];
  }
}

/** @param {string} text */
function hash(text) {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1)
    value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  return value;
}
