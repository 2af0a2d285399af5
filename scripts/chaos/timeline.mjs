// When somebody could act: at least one worker stood, and nothing was in its way to the database. What a
// takeover may take is counted in that time alone.

/** @typedef {{ atMs: number, isAble: boolean, workers: number, troubles: string[] }} Turn */

export class Timeline {
  /** @type {Turn[]} */
  #turns = [];
  #workers = 0;
  /** What is in the way now. @type {Map<string, number>} */
  #troubles = new Map();

  /** @param {number} count workers that could act */
  setWorkers(count) {
    this.#workers = count;
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

  /** @param {number} fromMs @param {number} toMs */
  ableMs(fromMs, toMs) {
    let sum = 0;
    let at = fromMs;
    let isAble = false;
    for (const turn of this.#turns) {
      if (turn.atMs > toMs) break;
      if (turn.atMs > at) {
        if (isAble) sum += turn.atMs - at;
        at = turn.atMs;
      }
      isAble = turn.isAble;
    }
    return isAble ? sum + Math.max(0, toMs - at) : sum;
  }

  /** What changed meanwhile, with what was so before. @param {number} fromMs @param {number} toMs */
  between(fromMs, toMs) {
    const first = this.#turns.findLastIndex(({ atMs }) => atMs <= fromMs);
    return this.#turns.slice(Math.max(0, first)).filter(({ atMs }) => atMs <= toMs);
  }

  #note() {
    const troubles = [...this.#troubles.keys()];
    const workers = this.#workers;
    const isAble = workers > 0 && troubles.length === 0;
    this.#turns.push({ atMs: Date.now(), isAble, workers, troubles });
  }
}
