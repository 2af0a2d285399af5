// Writes a command's output: lines for people or one JSON document, with or without colours. Results go to standard output,
// complaints to standard error.

import picocolors from "picocolors";
import { shownJson } from "../shared/json.js";

/** Exit codes that shell scripts rely on. */
export const EXIT = {
  done: 0,
  /** The command worked, and its result is no. */
  no: 1,
  /** The command was called wrongly. */
  usage: 2,
  /** It could not be done. */
  impossible: 3,
} as const;

export type Colours = ReturnType<typeof picocolors.createColors>;

export class Shell {
  readonly isJson: boolean;
  readonly colours: Colours;
  readonly #write: (text: string) => Promise<void>;

  constructor(params: { readonly isJson: boolean }) {
    this.isJson = params.isJson;
    this.colours = picocolors.createColors(
      !params.isJson && wantsColours(process.env, process.stdout.isTTY === true),
    );
    const { stdout, stderr } = process;
    const write = stdout.write.bind(stdout);
    this.#write = (text) =>
      new Promise((resolve) => {
        write(text, () => resolve());
      });
    // Output of the user's code must not mix with the JSON document.
    if (params.isJson) stdout.write = stderr.write.bind(stderr) as typeof stdout.write;
  }

  /** Prints lines for people; nothing with --json. */
  async say(text: string): Promise<void> {
    if (!this.isJson) await this.#write(`${text}\n`);
  }

  /** Prints the one JSON document; nothing without --json. */
  async printJson(document: unknown): Promise<void> {
    if (this.isJson) await this.#write(`${shownJson(JSON.stringify(document))}\n`);
  }

  /** Prints a warning or an error to standard error. */
  complain(text: string): void {
    process.stderr.write(`${text}\n`);
  }
}

/** NO_COLOR (https://no-color.org) wins; a pipe gets none unless FORCE_COLOR asks for them. */
export function wantsColours(
  env: Readonly<Record<string, string | undefined>>,
  isTerminal: boolean,
): boolean {
  if (env.NO_COLOR) return false;
  if (env.FORCE_COLOR) return env.FORCE_COLOR !== "0";
  return isTerminal && env.TERM !== "dumb";
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: taking them out is the point.
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/** Stored text on one line, without anything that could steer a terminal or turn the order of what it shows. */
export function plain(text: string): string {
  return text.replace(CONTROL, (character) => (/\s/.test(character) ? " " : "\uFFFD"));
}

export function cut(text: string, lengthMax: number): string {
  return text.length > lengthMax ? `${text.slice(0, lengthMax - 1)}…` : text;
}
