// When a process dies: at its n-th statement.

export type Fate = "before" | "after";

export class Cut {
  readonly #fate: Fate;
  readonly #onDeath: () => void;
  #left: number;
  isDead = false;

  constructor(params: {
    readonly fate: Fate;
    /** The statement that is its last, counted from one. */
    readonly number: number;
    readonly onDeath: () => void;
  }) {
    this.#fate = params.fate;
    this.#left = params.number;
    this.#onDeath = params.onDeath;
  }

  /** The fate of the next statement. */
  next(): Fate | null {
    this.#left -= 1;
    return this.#left === 0 ? this.#fate : null;
  }

  died(): void {
    this.isDead = true;
    this.#onDeath();
  }
}
