// Rows of what is kept with runs, progress and log lines, to the store's records; the same for both engines.

import { type KeptLevel, type KeptLog, LOG_LEVELS_KEPT, type LogRecord } from "./log-store.js";
import type { ProgressRecord } from "./progress-store.js";

type Row = Record<string, unknown>;

export function toProgressRecord(row: Row): ProgressRecord {
  return {
    id: String(row.run),
    attempt: Number(row.attempt),
    at: Number(row.at),
    stage: textOrNull(row.stage),
    done: numberOrNull(row.done),
    total: numberOrNull(row.total),
    stages: (JSON.parse(String(row.stages)) as [string, number][]).map(([stage, at]) => ({
      stage,
      at,
    })),
  };
}

export function toLogRecord(row: Row): LogRecord {
  return {
    fence: Number(row.fence),
    no: Number(row.no),
    attempt: Number(row.attempt),
    at: Number(row.at),
    level: LOG_LEVELS_KEPT[Number(row.level)] as KeptLevel,
    message: String(row.message),
    fields: textOrNull(row.fields),
  };
}

/** `marker`: the fields of the line about dropped lines. */
export function toKeptLog({ last, chars, marker }: Row): KeptLog {
  const { dropped = 0, to = 0 } = JSON.parse(textOrNull(marker) ?? "{}") as {
    readonly dropped?: number;
    readonly to?: number;
  };
  return { last: Number(last), chars: Number(chars), dropped, droppedTo: to };
}

function numberOrNull(value: unknown): number | null {
  return value === null || value === undefined ? null : Number(value);
}

function textOrNull(value: unknown): string | null {
  return value === null || value === undefined ? null : String(value);
}
