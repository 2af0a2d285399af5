// Named locks as tables for people.

import type { Lock, LockGrantView } from "../../locks/locks.js";
import type { LockState, LockStats } from "../../locks/rules/lock.js";
import { formatDuration } from "../../shared/duration-text.js";
import { type Colours, cut, plain } from "../shell.js";
import { factLines, newTable } from "./runs.js";
import { shortTime } from "./times.js";

const NOTE_LENGTH_MAX = 40;

const COLOUR_OF_STATE: Readonly<Record<LockState, "green" | "yellow" | "red" | "cyan">> = {
  acquired: "yellow",
  released: "green",
  expired: "red",
  revoked: "cyan",
};

export function lockListPage(
  page: { readonly locks: readonly Lock[]; readonly nextCursor: string | null },
  colours: Colours,
): string {
  if (page.locks.length === 0) return "No lock is held.";
  const table = newTable(["name", "holder", "fence", "acquired", "until", "waiting"], colours);
  for (const { name, holder, fence, acquiredAt, until, waiting } of page.locks) {
    table.push([
      plain(name),
      plain(holder),
      String(fence),
      shortTime(acquiredAt),
      shortTime(until),
      String(waiting),
    ]);
  }
  return `${table.toString()}${more(page.nextCursor)}`;
}

export function lockHistoryPage(
  page: { readonly grants: readonly LockGrantView[]; readonly nextCursor: string | null },
  colours: Colours,
): string {
  if (page.grants.length === 0) return "No lock was ever held, or it was too long ago.";
  const table = newTable(["name", "fence", "state", "holder", "acquired", "held", "note"], colours);
  for (const { name, fence, state, holder, acquiredAt, heldMs, note } of page.grants) {
    table.push([
      plain(name),
      String(fence),
      colours[COLOUR_OF_STATE[state]](state),
      plain(holder),
      shortTime(acquiredAt),
      heldMs === null ? "" : formatDuration(heldMs),
      cut(plain(note ?? ""), NOTE_LENGTH_MAX),
    ]);
  }
  return `${table.toString().replace(/(?<! ) +$/gm, "")}${more(page.nextCursor)}`;
}

export function lockStatsPage(stats: LockStats, colours: Colours): string {
  return factLines(
    [
      ["acquired", `${stats.acquired} held now`],
      ["waiting", `${stats.waiting} calls wait for one`],
      ["released", String(stats.released)],
      ["expired", `${stats.expired} never released by their holder`],
      ["revoked", `${stats.revoked} taken by an operator`],
    ],
    colours,
  ).join("\n");
}

function more(nextCursor: string | null): string {
  return nextCursor === null ? "" : `\nMore: add --cursor '${plain(nextCursor)}'`;
}
