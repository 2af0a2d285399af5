// Makes random numbers and ids for production.

import { UuidV7Source } from "../id.js";
import type { Ids, Random } from "../ports.js";

export const systemRandom: Random = { next: () => Math.random() };

export function systemIds(): Ids {
  const source = new UuidV7Source(
    () => Date.now(),
    (bytes) => crypto.getRandomValues(bytes),
  );
  return { run: () => source.next(), unique: () => crypto.randomUUID() };
}
