// Makes random choices that depend only on a seed. Every part of a simulation has a stream of its own, so that leaving
// out one fault or operation does not change the choices of the others.

import { SeededRandom } from "../virtual-clock.js";

/** Hashes texts and numbers to a number, the same on every machine. */
export function mix(...parts: readonly (string | number)[]): number {
  let hash = 0x811c9dc5;
  for (const part of parts) {
    const text = String(part);
    for (let at = 0; at < text.length; at += 1) {
      hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
    }
    hash = Math.imul(hash ^ (hash >>> 15), 0x85ebca6b);
  }
  return (hash ^ (hash >>> 13)) >>> 0;
}

export class Draw {
  readonly #random: SeededRandom;

  constructor(...parts: readonly (string | number)[]) {
    this.#random = new SeededRandom(mix(...parts));
  }

  next(): number {
    return this.#random.next();
  }

  /** A whole number, both bounds included. */
  whole(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  /** Draws on a logarithmic scale: each power of ten is equally likely. */
  logarithmic(min: number, max: number): number {
    return Math.round(min * (max / min) ** this.next());
  }

  isTrue(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(from: readonly T[]): T {
    return from[Math.floor(this.next() * from.length)] as T;
  }

  /** Picks by weight. */
  weighted<T>(from: readonly (readonly [number, T])[]): T {
    const total = from.reduce((sum, [weight]) => sum + weight, 0);
    let left = this.next() * total;
    for (const [weight, value] of from) {
      left -= weight;
      if (left < 0) return value;
    }
    return (from.at(-1) as readonly [number, T])[1];
  }
}
