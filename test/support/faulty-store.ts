// A store around a store: it keeps a list of every statement with its answer, and does on demand what
// networks do: fails a statement before it is sent, loses the answer after it was committed, or keeps
// an answer back. The store inside is the real one.

import { OutcomeUnknownError, StoreUnavailableError } from "../../src/shared/errors.js";
import type { Store } from "../../src/store/store.js";
import { wrapStore } from "../../src/testing/wrap-store.js";

type Noun = {
  [Name in keyof Store]: Store[Name] extends (...args: never[]) => unknown ? never : Name;
}[keyof Store];

/** The verbs that are statements, each with its noun: "claims.exchange". */
export type Verb = Exclude<
  {
    [Name in Exclude<
      Noun,
      "engine" | "load" | "connectionsMax"
    >]: `${Name}.${keyof Store[Name] & string}`;
  }[Exclude<Noun, "engine" | "load" | "connectionsMax">],
  "enqueue.withinSync"
>;

type VerbFunction<Name extends Verb> = Name extends `${infer Noun extends keyof Store}.${infer Own}`
  ? Own extends keyof Store[Noun]
    ? Store[Noun][Own] extends (...args: infer Params) => infer Result
      ? (...args: Params) => Result
      : never
    : never
  : never;

/**
 * Before: nothing was sent. After: it was committed and its answer was lost. Swallowed: nothing was
 * sent, and nobody ever says so.
 */
export type Fault = "before" | "after" | "swallowed";

type ParamsOf<Name extends Verb> = Parameters<VerbFunction<Name>>[0];
type AnswerOf<Name extends Verb> = Awaited<ReturnType<VerbFunction<Name>>>;

/** One statement as the store saw it; `answer` is what the store said, also if it was then lost. */
export type Call<Name extends Verb = Verb> = {
  readonly verb: Name;
  readonly params: ParamsOf<Name>;
  readonly atMs: number;
  answer?: AnswerOf<Name>;
  fault?: Fault;
};

type Rule = {
  readonly verb: Verb;
  readonly fault: Fault;
  readonly error: unknown;
  fits(params: never): boolean;
  left: number;
};

export class StoreFaults {
  readonly calls: Call[] = [];
  readonly #now: () => number;
  readonly #rules = new Set<Rule>();
  readonly #gates = new Map<`${"before" | "after"} ${Verb}`, (() => void)[]>();
  #isDown = false;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** The next statements of this verb fail in this way. */
  fail<Name extends Verb>(
    verb: Name,
    fault: Fault,
    options: {
      readonly times?: number;
      readonly fits?: (params: ParamsOf<Name>) => boolean;
      /** The error to throw; by default the one of a store that cannot be reached. */
      readonly error?: unknown;
    } = {},
  ): void {
    const { times = 1, fits = () => true, error } = options;
    this.#rules.add({ verb, fault, error, left: times, fits: fits as (params: never) => boolean });
  }

  /** The next statement of this verb is never answered. */
  swallow(verb: Verb): void {
    this.fail(verb, "swallowed");
  }

  /** From now on nothing reaches the database. */
  goDown(): void {
    this.#isDown = true;
  }

  comeUp(): void {
    this.#isDown = false;
    this.#rules.clear();
  }

  /** Statements of this verb take effect at once, but their answers wait for `deliver`. */
  keepBack(verb: Verb): void {
    this.#gates.set(`after ${verb}`, []);
  }

  /** Statements of this verb wait for `deliver` before they take effect, as behind a lock. */
  holdUp(verb: Verb): void {
    this.#gates.set(`before ${verb}`, []);
  }

  deliver(verb: Verb): void {
    for (const gate of [`before ${verb}`, `after ${verb}`] as const) {
      const waiting = this.#gates.get(gate) ?? [];
      this.#gates.delete(gate);
      for (const release of waiting) release();
    }
  }

  of<Name extends Verb>(verb: Name): Call<Name>[] {
    return this.calls.filter((call) => call.verb === verb) as unknown as Call<Name>[];
  }

  clear(): void {
    this.calls.length = 0;
  }

  /** Runs one statement through the faults. */
  async run(verb: Verb, params: never, statement: () => Promise<unknown>): Promise<unknown> {
    const call: Call = { verb, params, atMs: this.#now() };
    this.calls.push(call);
    const rule = this.#take(verb, params);
    const fault = this.#isDown ? "before" : rule?.fault;
    if (fault) call.fault = fault;
    if (fault === "before") throw rule?.error ?? new StoreUnavailableError({ tried: verb });
    if (fault === "swallowed") return new Promise(() => undefined);
    await this.#pass(`before ${verb}`);
    const answer = await statement();
    call.answer = answer as never;
    await this.#pass(`after ${verb}`);
    if (fault === "after") throw rule?.error ?? new OutcomeUnknownError(verb);
    return answer;
  }

  async #pass(name: `${"before" | "after"} ${Verb}`): Promise<void> {
    const gate = this.#gates.get(name);
    if (gate) await new Promise<void>((resolve) => gate.push(resolve));
  }

  #take(verb: Verb, params: never): Rule | undefined {
    for (const rule of this.#rules) {
      if (rule.verb !== verb || !rule.fits(params)) continue;
      rule.left -= 1;
      if (rule.left === 0) this.#rules.delete(rule);
      return rule;
    }
    return undefined;
  }
}

/** `track` sees every statement that is really sent, for as long as it is under way. */
export function faultyStore(params: {
  readonly store: Store;
  readonly faults: StoreFaults;
  readonly track: <T>(statement: Promise<T>, verb: string) => Promise<T>;
}): Store {
  const { store, faults, track } = params;
  return wrapStore(store, (verb, call) => {
    if (verb === "onWake" || verb === "wake" || verb === "enqueue.withinSync") return call;
    if (verb === "open" || verb === "close") return () => track(call() as Promise<unknown>, verb);
    return (given: unknown) =>
      faults.run(verb as Verb, given as never, () => track(call(given) as Promise<unknown>, verb));
  });
}
