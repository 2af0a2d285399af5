// Records when a worker could act: it was running, and it could reach the database. The time of a takeover counts only
// then.

/** @typedef {{ atMs: number, able: readonly string[], troubles: readonly string[] }} Turn */

export class Timeline {
  /** @type {Turn[]} */
  #turns = [];
  /** @type {readonly string[]} */
  #workers = [];
  /** The current obstacles. @type {Map<string, number>} */
  #troubles = new Map();

  /** @param {readonly string[]} names workers that could act */
  setWorkers(names) {
    this.#workers = names;
    this.#note();
  }

  /** @param {string} what @returns {() => void} ends it */
  trouble(what) {
    this.#troubles.set(what, (this.#troubles.get(what) ?? 0) + 1);
    this.#note();
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      const left = (this.#troubles.get(what) ?? 1) - 1;
      if (left === 0) this.#troubles.delete(what);
      else this.#troubles.set(what, left);
      this.#note();
    };
  }

  /** All the time in which anybody could act. @param {number} fromMs @param {number} toMs */
  ableMs(fromMs, toMs) {
    return this.#spells(fromMs, toMs).reduce(
      (sum, { able, lastsMs }) => sum + (able.length > 0 ? lastsMs : 0),
      0,
    );
  }

  /**
   * Returns the longest unbroken time in which one worker could act. Stretches shorter than a poll and a second are
   * too short for a takeover, however many there are.
   * @param {number} fromMs @param {number} toMs
   */
  unbrokenMs(fromMs, toMs) {
    /** @type {Map<string, number>} */
    let lasting = new Map();
    let longest = 0;
    for (const { able, lastsMs } of this.#spells(fromMs, toMs)) {
      lasting = new Map(able.map((name) => [name, (lasting.get(name) ?? 0) + lastsMs]));
      longest = Math.max(longest, ...lasting.values());
    }
    return longest;
  }

  /** How many times one worker could act for so long without a break: chances for a late takeover to show. @param {number} ms */
  stretches(ms) {
    const [first, last] = [this.#turns[0], this.#turns.at(-1)];
    /** @type {Map<string, number>} */
    let lasting = new Map();
    let count = 0;
    for (const { able, lastsMs } of this.#spells(first?.atMs ?? 0, last?.atMs ?? 0)) {
      const before = lasting;
      lasting = new Map(able.map((name) => [name, (before.get(name) ?? 0) + lastsMs]));
      for (const [name, sum] of lasting) if (sum >= ms && (before.get(name) ?? 0) < ms) count += 1;
    }
    return count;
  }

  /** The periods in order, each with the workers that could act in it. @param {number} fromMs @param {number} toMs */
  #spells(fromMs, toMs) {
    const turns = this.between(fromMs, toMs);
    return turns.map(({ atMs, able, troubles }, at) => ({
      able: troubles.length > 0 ? [] : able,
      lastsMs: Math.max(0, (turns[at + 1]?.atMs ?? toMs) - Math.max(atMs, fromMs)),
    }));
  }

  /** The changes within the range, after the state at its start. @param {number} fromMs @param {number} toMs */
  between(fromMs, toMs) {
    const first = this.#turns.findLastIndex(({ atMs }) => atMs <= fromMs);
    return this.#turns.slice(Math.max(0, first)).filter(({ atMs }) => atMs <= toMs);
  }

  #note() {
    const troubles = [...this.#troubles.keys()];
    this.#turns.push({ atMs: Date.now(), able: this.#workers, troubles });
  }
}
