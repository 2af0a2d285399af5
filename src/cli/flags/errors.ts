// Collects wrong flags and arguments for every command: one call reports every mistake.

import { type Command, InvalidArgumentError } from "commander";
import type { Holdfast } from "../../holdfast.js";
import { ConfigurationError, type Problem } from "../../shared/errors.js";
import { prop, textProp } from "../../shared/failure.js";
import { UsageError } from "../failure.js";

export type WrongFlag = { readonly text: string; readonly problem: Problem };

/** Makes this command collect wrong values in `wrong`; nothing throws while parsing. */
export function noteWrongFlags(command: Command, wrong: WrongFlag[]): void {
  for (const option of command.options) {
    const { parseArg } = option;
    if (!parseArg) continue;
    option.parseArg = <T>(value: string, previous: T) =>
      noting(
        wrong,
        () => parseArg(value, previous) as T,
        previous,
        (message) => ({
          text: `${option.long ?? option.flags} ${JSON.stringify(value)}: ${asProblem(message)}`,
          problem: { field: option.long ?? option.flags, message: asProblem(message) },
        }),
      );
  }
  for (const argument of command.registeredArguments) {
    const { parseArg } = argument;
    if (!parseArg) continue;
    argument.parseArg = <T>(value: string, previous: T) =>
      noting(
        wrong,
        () => parseArg(value, previous) as T,
        previous,
        (message) => ({
          text: `<${argument.name()}> ${JSON.stringify(value)}: ${asProblem(message)}`,
          problem: { field: `<${argument.name()}>`, message: asProblem(message) },
        }),
      );
  }
}

export function refuseWrongFlags(wrong: readonly WrongFlag[]): void {
  if (wrong.length === 0) return;
  throw new UsageError(
    `${wrong.map(({ text }) => text).join("\n")}\nAdd --help to see the commands and options.`,
  );
}

function noting<T>(
  wrong: WrongFlag[],
  read: () => T,
  fallback: T,
  wordsFor: (message: string) => WrongFlag,
): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof InvalidArgumentError) wrong.push(wordsFor(error.message));
    // Its message names the flag and leaves out the value.
    else if (error instanceof UsageError) wrong.push(named(error.message));
    else throw error;
    return fallback;
  }
}

function named(text: string): WrongFlag {
  const [, field = "flags", message = text] = /^(--[a-z-]+): (.*)$/s.exec(text) ?? [];
  return { text, problem: { field, message } };
}

/** Turns the message of a flag ("It must be …") into the message of a field ("must be …"). */
function asProblem(message: string): string {
  return message.replace(/^It /, "");
}

// Errors of the library, with option names replaced by flag names. A wrong value is a usage error even if the library found it.

const FLAG_OF_MEMBER: ReadonlyMap<string, string> = new Map([
  ["calendars", "--calendar"],
  ["tags", "--tag"],
  ["windows", "--window"],
  ["missed.run", "--missed"],
]);

/** `verb`: how the library names the options in its problems, such as "schedules.upsert()". */
export async function underFlagNames<T>(verb: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const problems = problemsOf(error);
    const isOurs = problems.length > 0 && problems.every(({ field }) => field.startsWith(verb));
    if (!isOurs) throw error;
    throw new UsageError(problems.map((problem) => refusal(problem, verb)).join("\n"));
  }
}

/** The same for a list: its filters have the names of their flags. */
export async function underGivenFlags<T>(flags: object, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const problems = problemsOf(error);
    const memberOf = ({ field }: Problem) => field.slice(field.lastIndexOf(".") + 1);
    // An error about the database itself is not a usage error.
    const isGiven = (each: Problem) =>
      each.field !== "database" && Object.hasOwn(flags, memberOf(each));
    const isOurs = problems.length > 0 && problems.every(isGiven);
    if (!isOurs) throw error;
    throw new UsageError(
      problems.map((each) => `--${kebab(memberOf(each))}: ${each.message}`).join("\n"),
    );
  }
}

/** By its code: the configuration file may bring its own copy of the library. */
function problemsOf(error: unknown): readonly Problem[] {
  if (textProp(error, "code") !== "CONFIGURATION_INVALID") return [];
  return prop(error, "problems") as readonly Problem[];
}

function refusal({ field, message }: Problem, verb: string): string {
  const member = field.slice(verb.length).replace(/^\./, "");
  if (member === "") return `It ${message}`;
  const path = member.replace(/\[\d+\]/g, "");
  const [first = "", ...rest] = path.split(".");
  // One flag holds all of them as JSON.
  if (first === "alerts" && rest.length > 0) return `--alerts: ${rest.join(".")} ${message}`;
  const flag = FLAG_OF_MEMBER.get(path) ?? FLAG_OF_MEMBER.get(first) ?? `--${kebab(path)}`;
  return `${flag}: ${message}`;
}

function kebab(path: string): string {
  return path.replace(/\./g, "-").replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/**
 * Collects every mistake of a start for one report: flags, variables, options in code. Only the constructor in the configuration
 * file knows the options in code. So `load` passes the problems found before to that constructor, which throws all of them
 * together; nothing of the file runs after that.
 */
export class FlagErrors {
  readonly #problems: Problem[];
  #isUsage: boolean;

  constructor(wrong: readonly WrongFlag[]) {
    this.#problems = wrong.map(({ problem }) => problem);
    this.#isUsage = wrong.length > 0;
  }

  get isWrong(): boolean {
    return this.#problems.length > 0;
  }

  /** Reads one part. If it is wrong, notes the problems and returns the fallback. */
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
      const message = textProp(error, "message") ?? "";
      throw this.#refusal(isNamed ? message : `${message}\n${this.#lines()}`, error);
    }
    if (this.#problems.length > 0) throw this.#refusal(this.#lines(), null);
    return holdfast;
  }

  #lines(): string {
    return this.#problems.map(({ field, message }) => `${field}: ${message}`).join("\n");
  }

  /** Any wrong flag makes it a usage error. */
  #refusal(message: string, error: unknown): Error {
    if (this.#isUsage)
      return new UsageError(`${message}\nAdd --help to see the commands and options.`);
    if (error instanceof Error) return Object.assign(error, { message });
    return new ConfigurationError(this.#problems);
  }
}
