// Fixtures for engine tests of schedules: an instance that records its runs, and the ledger and
// the runs of a schedule as readable lines.

import type { HoldfastOptions } from "../../src/instance/config.js";
import type { Job } from "../../src/runs/job.js";
import type { RunId } from "../../src/runs/rules/run.js";
import type { RunRecord } from "../../src/store/runs/runs.js";
import type { ScheduleState } from "../../src/store/schedules/state.js";
import type { TickRecord } from "../../src/store/schedules/ticks.js";
import type { RunContext } from "../../src/worker/handler/context.js";
import type { Member, World } from "./world.js";

export const SECOND = 1_000;
export const MINUTE = 60_000;
export const HOUR = 3_600_000;
export const DAY = 86_400_000;
/** When every world begins: a Thursday. */
export const NOON = Date.UTC(2026, 0, 15, 12);

export type Student = Member & {
  readonly study: Job<unknown>;
  /** The started runs: mode and tick. */
  readonly ran: string[];
};

/** An instance with the job "study"; nothing is started. */
export function student(
  world: World,
  given: {
    readonly run?: (ctx: RunContext, input: unknown) => unknown;
    readonly attempts?: number;
    readonly options?: HoldfastOptions;
    readonly skewMs?: number;
    readonly program?: string;
  } = {},
): Student {
  const { run, attempts = 1, options = {}, ...internals } = given;
  const member = world.member(options, internals);
  const ran: string[] = [];
  const study = member.holdfast.job<unknown>("study", {
    retry: { attempts, delay: "10s", factor: 1, jitter: 0 },
    run: async (input, ctx) => {
      ran.push(`${ctx.mode} ${timeText(ctx.nominalAt)}`);
      return run?.(ctx, input);
    },
  });
  return { ...member, study, ran };
}

/** "12:01", "12:01:30", "12:01:30.500"; another day than the first goes before it. */
export function timeText(at: Date | number | null): string {
  if (at === null) return "-";
  const text = new Date(at).toISOString();
  const day = text.startsWith("2026-01-15") ? "" : `${text.slice(5, 10)} `;
  return (
    day +
    text
      .slice(11, 23)
      .replace(/\.000$/, "")
      .replace(/:00$/, "")
  );
}

/** The ledger of a schedule, oldest first: `12:01 on_time`, `12:02..12:05 nobody ×4`. */
export async function ledger(world: World, schedule = "s"): Promise<string[]> {
  return (await tickRecords(world, schedule)).map(({ firstAt, lastAt, count, reason }) =>
    count === 1
      ? `${timeText(firstAt)} ${reason}`
      : `${timeText(firstAt)}..${timeText(lastAt)} ${reason} ×${count}`,
  );
}

export async function tickRecords(world: World, schedule = "s"): Promise<TickRecord[]> {
  const all: TickRecord[] = [];
  const store = await world.store();
  for (;;) {
    const last = all.at(-1);
    const before = last ? { before: { at: last.firstAt, schedule } } : {};
    const page = await store.schedules.ticks({ schedule, limit: 500, ...before });
    all.push(...page);
    if (page.length < 500) return all.reverse();
  }
}

/** The runs of a schedule in the order of their making. */
export async function runRecords(world: World, schedule = "s"): Promise<RunRecord[]> {
  const all: RunRecord[] = [];
  const store = await world.store();
  for (;;) {
    const last = all.at(-1);
    const page = await store.runs.list({
      schedule,
      limit: 500,
      ...(last ? { before: last.id } : {}),
    });
    all.push(...page);
    if (page.length < 500) return all.reverse();
  }
}

/** `scheduled 12:01 completed`, in the order of their making. */
export async function runLines(world: World, schedule = "s"): Promise<string[]> {
  return (await runRecords(world, schedule)).map(
    ({ mode, nominalAt, status }) => `${mode} ${timeText(nominalAt)} ${status}`,
  );
}

export async function stateOf(world: World, schedule = "s"): Promise<ScheduleState> {
  const { schedules } = await (await world.store()).schedules.states({ names: [schedule] });
  const [state] = schedules;
  if (!state) throw new Error(`There is no schedule ${schedule}.`);
  return state;
}

/** The id of the run of a tick. */
export async function runOf(world: World, at: number, schedule = "s"): Promise<RunId> {
  const found = (await runRecords(world, schedule)).find(({ nominalAt }) => nominalAt === at);
  if (!found) throw new Error(`The tick ${timeText(at)} has no run.`);
  return found.id;
}

/** `2026-01-15T12:…` for a time after noon in milliseconds. */
export function at(afterNoonMs: number): Date {
  return new Date(NOON + afterNoonMs);
}
