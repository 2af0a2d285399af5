// Names the steps and waits of one execution, and judges what is stored under a name. Pure: the same calls in the same
// order get the same names, so that a later execution finds what an earlier one stored.

export type StepKind = "step" | "sleep" | "signal" | "run";
/** A retry is a step whose last try failed. */
export type WaitKind = "retry" | "sleep" | "signal" | "run";

/** How many steps and waits a run may have. */
export const STEPS_MAX = 10_000;

/** What is requested under a name. Two different requests must not share one. */
export type StepAsk = {
  readonly kind: StepKind;
  readonly signal?: string | null;
  readonly key?: string | null;
};

/** Gives names to the calls of one execution. A name that is used again after its first use has ended gets a number. */
export class StepNames {
  readonly #uses = new Map<string, { count: number; isOpen: boolean }>();

  /** Null: the name is in use by a call that has not ended. */
  take(base: string): string | null {
    const use = this.#uses.get(base) ?? { count: 0, isOpen: false };
    if (use.isOpen) return null;
    use.count += 1;
    use.isOpen = true;
    this.#uses.set(base, use);
    return use.count === 1 ? base : `${base}#${use.count}`;
  }

  ended(base: string): void {
    const use = this.#uses.get(base);
    if (use) use.isOpen = false;
  }
}

/** Both requests in words, if they differ; null: they are the same. */
export function changeOf(
  stored: StepAsk,
  asked: StepAsk,
): { readonly stored: string; readonly asked: string } | null {
  const isSame =
    stored.kind === asked.kind &&
    (stored.signal ?? null) === (asked.signal ?? null) &&
    (stored.key ?? null) === (asked.key ?? null);
  return isSame ? null : { stored: inWords(stored), asked: inWords(asked) };
}

function inWords({ kind, signal, key }: StepAsk): string {
  switch (kind) {
    case "step":
      return "a step";
    case "sleep":
      return "a sleep";
    case "run":
      return `a call of ${JSON.stringify(key)}`;
    case "signal":
      return `a wait for the signal ${JSON.stringify(signal)} with the key ${JSON.stringify(key)}`;
  }
}
