// Log lines of a run, one line each, for people.

import type { RunLogEntry } from "../../runs/run-records.js";
import { type Colours, plain } from "../shell.js";

const COLOUR_OF_LEVEL = { debug: "dim", info: "cyan", warn: "yellow", error: "red" } as const;

/** 2026-01-15T12:00:01.000Z #1 info  looked at it {"market":"eu"} */
export function logLine(
  { at, attempt, level, message, fields }: RunLogEntry,
  colours: Colours,
): string {
  const text = Object.keys(fields).length === 0 ? "" : ` ${plain(JSON.stringify(fields))}`;
  const shown = colours[COLOUR_OF_LEVEL[level]](level.padEnd(5));
  return `${colours.dim(`${at.toISOString()} #${attempt}`)} ${shown} ${plain(message)}${colours.dim(text)}`;
}
