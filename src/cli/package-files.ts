// Reads files of the package for the commands. The code lies two folders deep in the repository and in the package alike.

import { readFileSync } from "node:fs";

export function packageVersion(): string {
  const { version } = JSON.parse(textOf("package.json")) as { version: string };
  return version;
}

/** The `.env.example` that `holdfast init` writes into a new project. */
export function environmentText(): string {
  return textOf(".env.example");
}

function textOf(name: string): string {
  return readFileSync(new URL(`../../${name}`, import.meta.url), "utf8");
}
