// Settlements that have not reached the database yet, in order, taken in portions that drivers and
// servers accept. What was sent and not answered is put back: repeating it is harmless. What the database
// refuses travels alone from then on, without a claim, so that one that it never takes holds back neither
// the others nor new work.

import { SettlementRefusedError } from "../shared/errors.js";
import { describeFailure } from "../shared/failure.js";
import type { Settlement } from "../store/store.js";

/** As many as a claim brings: what two of them brought is settled by two exchanges at once. */
const COUNT_MAX = 1_000;
const CHARS_MAX = 8 * 1024 * 1024;
/** A database that takes others refuses a settlement this often before something plainer is sent. */
const REFUSALS_MAX = 3;

type Doubt = {
  readonly refusals: number;
  /** How many portions had been taken when this one was refused first. */
  readonly takenBefore: number;
  readonly isPlain: boolean;
};

export class Outbox {
  #settlements: Settlement[] = [];
  readonly #doubts = new Map<Settlement, Doubt>();
  #takenCount = 0;
  #wasDoubtful = false;

  get length(): number {
    return this.#settlements.length;
  }

  push(settlement: Settlement): void {
    this.#settlements.push(settlement);
  }

  /** With a claim to be sent too, what is in doubt and that claim take turns: none waits for the other. */
  take({ hasClaim }: { readonly hasClaim: boolean }): Settlement[] {
    const all = this.#settlements;
    const isInDoubt = this.isDoubtful(all);
    const isClaimsTurn = isInDoubt && hasClaim && this.#wasDoubtful;
    this.#wasDoubtful = isInDoubt && !isClaimsTurn;
    if (isClaimsTurn) return [];
    let count = 0;
    let chars = 0;
    while (count < all.length && count < COUNT_MAX && chars < CHARS_MAX) {
      const settlement = all[count] as Settlement;
      if (this.#doubts.size > 0 && this.#doubts.has(settlement)) {
        if (count === 0) count = 1;
        break;
      }
      chars += charsOf(settlement);
      count += 1;
    }
    this.#settlements = count === all.length ? [] : all.slice(count);
    return count === all.length ? all : all.slice(0, count);
  }

  /** Whether the first of these was refused before; nothing else travels with it. */
  isDoubtful([first]: readonly Settlement[]): boolean {
    return this.#doubts.size > 0 && first !== undefined && this.#doubts.has(first);
  }

  putBack(settlements: readonly Settlement[]): void {
    this.#settlements = [...settlements, ...this.#settlements];
  }

  /** The database has taken these. */
  taken(settlements: readonly Settlement[]): void {
    this.#takenCount += 1;
    if (this.#doubts.size > 0)
      for (const settlement of settlements) this.#doubts.delete(settlement);
  }

  /**
   * The database answers, and refuses these. Which one of several is at fault is found by sending each
   * alone. One that is refused while others are taken is replaced by a plain failure, which has nothing of
   * the user's in it; answers what became of it, if it was given up.
   */
  refused(settlements: readonly Settlement[], error: unknown): GivenUp | null {
    const [only] = settlements;
    if (only === undefined || settlements.length > 1) {
      for (const settlement of settlements) this.#doubt(settlement, NO_REFUSAL);
      return null;
    }
    const doubt = this.#doubts.get(only) ?? { ...NO_REFUSAL, takenBefore: this.#takenCount };
    this.#doubts.delete(only);
    const refusals = doubt.refusals + 1;
    const isAlone = refusals >= REFUSALS_MAX && this.#takenCount > doubt.takenBefore;
    if (!isAlone) {
      this.#doubt(only, { ...doubt, refusals });
      return null;
    }
    const plainer = doubt.isPlain ? null : plainFailure(only, error);
    if (plainer !== null) this.#doubt(plainer, { ...NO_REFUSAL, isPlain: true });
    return { settlement: only, becomes: plainer === null ? "let_go" : "failed" };
  }

  #doubt(settlement: Settlement, doubt: Omit<Doubt, "takenBefore"> & Partial<Doubt>): void {
    this.#doubts.set(settlement, { takenBefore: this.#takenCount, ...doubt });
    this.#settlements.push(settlement);
  }
}

const NO_REFUSAL = { refusals: 0, isPlain: false };

/** A settlement that is no longer tried: the run fails instead, or its lease is left to run out. */
export type GivenUp = { readonly settlement: Settlement; readonly becomes: "failed" | "let_go" };

/** What is handed back has nothing plainer: its lease runs out by itself, and nothing was done. */
function plainFailure(settlement: Settlement, error: unknown): Settlement | null {
  if (settlement.to === "pending" && settlement.end === "handed_back") return null;
  const { id, fence, mode, schedule, batch, isLimited, ranMs } = settlement;
  const refusal = new SettlementRefusedError(describeFailure(error).message);
  const common = { id, fence, mode, schedule, batch, isLimited, ranMs };
  return { ...common, to: "failed", result: null, error: JSON.stringify(describeFailure(refusal)) };
}

function charsOf(settlement: Settlement): number {
  const result = settlement.to === "pending" ? 0 : (settlement.result?.length ?? 0);
  return result + (settlement.error?.length ?? 0);
}
