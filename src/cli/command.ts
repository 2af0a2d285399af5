// Builds commands: name, one line of help, examples, and an action that returns an exit code. Wrong calls are refused while
// parsing, before anything is opened.

import { Command } from "commander";
import { suggest } from "../shared/suggest.js";
import { UsageError } from "./failure.js";
import { refuseWrongFlags, type WrongFlag } from "./flags/errors.js";
import type { CommonFlags } from "./instance.js";
import type { Shell } from "./shell.js";

/** One call of the program; the action leaves its exit code here. */
export type Call = {
  readonly shell: Shell;
  exit: number;
  /** Values of flags and arguments that were refused, in order. */
  readonly wrong: WrongFlag[];
};

export function newCommand(params: {
  readonly name: string;
  readonly summary: string;
  readonly examples: readonly string[];
}): Command {
  const { name, summary, examples } = params;
  // An example that begins with another program contains `holdfast` itself.
  const shown = examples.map((each) => (each.includes("| holdfast ") ? each : `holdfast ${each}`));
  const lines = shown.map((each) => `  ${each}`).join("\n");
  return new CommandWithExample(name, shown[0] ?? "")
    .description(summary)
    .helpOption("-h, --help", "show this help")
    .addHelpText("after", `\nExample${examples.length > 1 ? "s" : ""}:\n${lines}`);
}

/** Shows how it is called where an argument is missing. */
class CommandWithExample extends Command {
  readonly #example: string;

  constructor(name: string, example: string) {
    super(name);
    this.#example = example;
  }

  missingArgument(name: string): never {
    return this.error(`missing required argument '${name}'\nFor example: ${this.#example}`, {
      code: "commander.missingArgument",
    });
  }
}

/** A group that lists by default: `holdfast queues`. */
export function listedByName(group: Command, list: Command): Command {
  const refuseUnknown = () => {
    const [word = ""] = group.args;
    const names = group.commands.map((each) => each.name());
    // Without this, the list would report one argument too many.
    if (word === "" || word.startsWith("-") || names.includes(word)) return;
    const meant = suggest(word, names);
    const hint = meant === undefined ? "" : `\n(Did you mean ${meant}?)`;
    throw new UsageError(
      `unknown command '${word}'${hint}\nAdd --help to see the commands and options.`,
    );
  };
  return group.addCommand(list, { isDefault: true }).hook("preSubcommand", refuseUnknown);
}

/** For commands that take their configuration file as an option. */
export function withConfigOption(command: Command): Command {
  return command.option("--config <file>", "configuration file (default: the one in this folder)");
}

/**
 * Wires an action; its arguments come first, the flags last. `reportsFlagErrors`: the action itself reports wrong flags, together
 * with wrong variables and wrong options in code.
 */
export function act<Flags extends CommonFlags>(
  command: Command,
  call: Call,
  action: (flags: Flags, ...args: string[]) => Promise<number>,
  { reportsFlagErrors = false }: { readonly reportsFlagErrors?: boolean } = {},
): Command {
  return command.action(async (...given: unknown[]) => {
    if (!reportsFlagErrors) refuseWrongFlags(call.wrong);
    // The last argument of a command may be a list.
    const args = given.slice(0, -2).flat() as string[];
    call.exit = await action(command.optsWithGlobals() as Flags, ...args);
  });
}
