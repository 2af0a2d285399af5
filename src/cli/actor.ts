// Who asks: kept with versions, pauses and backfills, so that others can see whose change it was.

import { hostname, userInfo } from "node:os";
import type { Command } from "commander";
import { requireName } from "../shared/names.js";
import { refusing } from "./flags/usage.js";

export type AskerFlags = { readonly by?: string };

export function withByOption(command: Command): Command {
  return command.option("--by <name>", "who does it (default: you, as user@host)", (text) =>
    refusing(() => requireName(text, "--by")),
  );
}

export function askedBy({ by }: AskerFlags): string {
  return by ?? `${userName()}@${hostname()}`;
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return "unknown"; // A container may run under a number that has no name.
  }
}
