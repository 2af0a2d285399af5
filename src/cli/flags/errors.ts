// Values of flags and arguments that are refused: all of them are read before anybody complains, so that
// one call shows every mistake.

import { type Command, InvalidArgumentError } from "commander";
import type { Problem } from "../../shared/errors.js";
import { prop, textProp } from "../../shared/failure.js";
import { UsageError } from "./usage.js";

export type WrongFlag = { readonly text: string; readonly problem: Problem };

/** Has the refusals of this command's values noted in place of thrown. */
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
          text: `option '${option.flags}' argument '${value}' is invalid. ${message}`,
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
          text: `command-argument value '${value}' is invalid for argument '${argument.name()}'. ${message}`,
          problem: { field: `<${argument.name()}>`, message: asProblem(message) },
        }),
      );
  }
}

export function refuseWrongFlags(wrong: readonly WrongFlag[]): void {
  if (wrong.length === 0) return;
  throw new UsageError(
    `${wrong.map(({ text }) => text).join("\n")}\nAdd --help to see what there is.`,
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
    // Its message names the flag, and keeps the value to itself.
    else if (error instanceof UsageError) wrong.push(named(error.message));
    else throw error;
    return fallback;
  }
}

function named(text: string): WrongFlag {
  const [, field = "flags", message = text] = /^(--[a-z-]+): (.*)$/s.exec(text) ?? [];
  return { text, problem: { field, message } };
}

/** "It must be …" of a flag is "must be …" of a field. */
function asProblem(message: string): string {
  return message.replace(/^It /, "");
}

// Refusals of the library in the words of the command line: the members of its options under the
// names of the flags that gave them. A wrong value is a wrong call, whoever found it.

const FLAG_OF_MEMBER: ReadonlyMap<string, string> = new Map([
  ["calendars", "--calendar"],
  ["tags", "--tag"],
  ["windows", "--window"],
  ["missed.run", "--missed"],
]);

/** `verb`: how the library names the options in its problems, such as "schedules.upsert()". */
export async function underFlagNames<T>(verb: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    const problems = problemsOf(error);
    const isOurs = problems.length > 0 && problems.every(({ field }) => field.startsWith(verb));
    if (!isOurs) throw error;
    throw new UsageError(problems.map((problem) => refusal(problem, verb)).join("\n"));
  }
}

/** The same for a list, whose filters are called as the flags that were given for them. */
export async function underGivenFlags<T>(flags: object, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    const problems = problemsOf(error);
    const memberOf = ({ field }: Problem) => field.slice(field.lastIndexOf(".") + 1);
    // What is wrong with the database itself is no wrong call.
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
  // One flag has all of them, as JSON.
  if (first === "alerts" && rest.length > 0) return `--alerts: ${rest.join(".")} ${message}`;
  const flag = FLAG_OF_MEMBER.get(path) ?? FLAG_OF_MEMBER.get(first) ?? `--${kebab(path)}`;
  return `${flag}: ${message}`;
}

function kebab(path: string): string {
  return path.replace(/\./g, "-").replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
