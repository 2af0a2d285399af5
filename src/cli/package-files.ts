// Files that lie beside the code, in the repository as in the package: both have it two folders deep.

import { readFileSync } from "node:fs";

export function packageVersion(): string {
  const { version } = JSON.parse(textOf("package.json")) as { version: string };
  return version;
}

/** The environment that `holdfast init` gives to a new project. */
export function environmentText(): string {
  return textOf(".env.example");
}

function textOf(name: string): string {
  return readFileSync(new URL(`../../${name}`, import.meta.url), "utf8");
}
