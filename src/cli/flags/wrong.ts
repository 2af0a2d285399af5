// Values of flags and arguments that are refused: all of them are read before anybody complains, so that
// one call shows every mistake.

import { type Command, InvalidArgumentError } from "commander";
import type { Problem } from "../../shared/errors.js";
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
