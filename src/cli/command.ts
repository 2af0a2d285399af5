// What every command is made of: a name, one line of help, examples, and an action that answers with
// an exit code. Wrong calls are refused while parsing, before anything is opened.

import { Command } from "commander";
import type { CommonFlags } from "./instance.js";
import type { Shell } from "./shell.js";
import { refuseWrongFlags, type WrongFlag } from "./wrong-flags.js";

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
  const lines = examples.map((example) => `  holdfast ${example}`).join("\n");
  return new Command(name)
    .description(summary)
    .helpOption("-h, --help", "show this help")
    .addHelpText("after", `\nExample${examples.length > 1 ? "s" : ""}:\n${lines}`);
}

/** For commands that take their configuration file as an option. */
export function withConfigOption(command: Command): Command {
  return command.option("--config <file>", "configuration file (default: the one in this folder)");
}

/**
 * Wires an action; its arguments come first, the flags last. `isWhole`: what is wrong with the flags is
 * named by the action itself, together with what is wrong elsewhere.
 */
export function act<Flags extends CommonFlags>(
  command: Command,
  call: Call,
  action: (flags: Flags, ...args: string[]) => Promise<number>,
  { isWhole = false }: { readonly isWhole?: boolean } = {},
): Command {
  return command.action(async (...given: unknown[]) => {
    if (!isWhole) refuseWrongFlags(call.wrong);
    const args = given.slice(0, -2) as string[];
    call.exit = await action(command.optsWithGlobals() as Flags, ...args);
  });
}
