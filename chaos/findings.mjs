// Collects violations, a few of each kind, and groups rows by key.

/** @typedef {{ check: string, message: string }} Violation */

/** So many violations of one kind are reported one by one. */
const TOLD_MAX = 5;

export class Finder {
  /** @type {Violation[]} */
  all = [];
  /** @type {Map<string, number>} */
  #told = new Map();

  /** @param {string} check @param {string} message */
  add(check, message) {
    const count = (this.#told.get(check) ?? 0) + 1;
    this.#told.set(check, count);
    if (count <= TOLD_MAX) this.all.push({ check, message });
    else if (count === TOLD_MAX + 1) this.all.push({ check, message: "… and more of this kind." });
  }
}

/**
 * @template Item, Key
 * @param {Iterable<Item>} items
 * @param {(item: Item) => Key} keyOf
 * @returns {Map<Key, Item[]>}
 */
export function groupBy(items, keyOf) {
  /** @type {Map<Key, Item[]>} */
  const groups = new Map();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}
