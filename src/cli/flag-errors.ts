// Everything that is wrong with a start in one report: flags, variables, the options in code. The last are
// known only to the constructor that the configuration file calls, so what was found before travels there
// and comes back with the rest; nothing of the file runs beyond it.

import type { Holdfast } from "../holdfast.js";
import { ConfigurationError, type Problem } from "../shared/errors.js";
import { prop, textProp } from "../shared/failure.js";
import type { Call } from "./command.js";
import { UsageError } from "./flags/usage.js";

export class Whole {
  readonly #problems: Problem[];
  #isUsage: boolean;

  constructor({ wrong }: Call) {
    this.#problems = wrong.map(({ problem }) => problem);
    this.#isUsage = wrong.length > 0;
  }

  get isWrong(): boolean {
    return this.#problems.length > 0;
  }

  /** Reads one part; what is wrong with it is noted, and reading goes on. */
  read<T>(take: () => T, fallback: T): T {
    try {
      return take();
    } catch (error) {
      if (error instanceof ConfigurationError) this.#problems.push(...error.problems);
      else if (error instanceof UsageError) {
        this.#isUsage = true;
        this.#problems.push({ field: "flags", message: error.message });
      } else throw error;
      return fallback;
    }
  }

  async load(loading: (problems: readonly Problem[]) => Promise<Holdfast>): Promise<Holdfast> {
    let holdfast: Holdfast;
    try {
      holdfast = await loading(this.#problems);
    } catch (error) {
      if (this.#problems.length === 0) throw error;
      const isNamed = Array.isArray(prop(prop(error, "cause"), "problems"));
      const said = textProp(error, "message") ?? "";
      throw this.#refusal(isNamed ? said : `${said}\n${this.#lines()}`, error);
    }
    if (this.#problems.length > 0) throw this.#refusal(this.#lines(), null);
    return holdfast;
  }

  #lines(): string {
    return this.#problems.map(({ field, message }) => `${field}: ${message}`).join("\n");
  }

  /** A call that is wrong is called wrongly, whatever else is wrong. */
  #refusal(message: string, error: unknown): Error {
    if (this.#isUsage) return new UsageError(`${message}\nAdd --help to see what there is.`);
    if (error instanceof Error) return Object.assign(error, { message });
    return new ConfigurationError(this.#problems);
  }
}
