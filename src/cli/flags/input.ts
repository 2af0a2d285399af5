// Inputs of runs as they are typed: JSON on the command line, or from standard input.

import { UsageError } from "./usage.js";

/** The value of a JSON text; `-` reads it from standard input. */
export async function readInput(text: string): Promise<unknown> {
  if (text !== "-") return readJson(text);
  standard ??= standardInput();
  return readJson(await standard);
}

/** It can be read once, also by a command that begins again. */
let standard: Promise<string> | null = null;

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new UsageError(
      `The input is not JSON: ${why}. Quote it for the shell, for example '{"market":"eu"}'.`,
    );
  }
}

async function standardInput(): Promise<string> {
  let text = "";
  process.stdin.setEncoding("utf8");
  for await (const chunk of process.stdin) text += chunk;
  return text;
}
