// Watches a backfill until it is done: a bar on a terminal, a line a step elsewhere, nothing but the
// last document for programs. Leaving it does not end the backfill.

import type { Holdfast } from "../holdfast.js";
import type { Backfill } from "../schedules/view.js";
import { systemClock } from "../shared/adapters/clock.js";
import { delay } from "../shared/ports.js";
import { describeExit } from "./failure.js";
import { type Progress, ProgressBar } from "./output/progress-bar.js";
import { backfillText } from "./output/schedules.js";
import { EXIT, type Shell } from "./shell.js";
import { firstSignal } from "./signals.js";

const LOOK_MS = 300;
const SILENT_MS = 10_000;

export async function watchBackfill(params: {
  readonly holdfast: Holdfast;
  readonly name: string;
  readonly begun: Backfill;
  readonly shell: Shell;
}): Promise<number> {
  const { holdfast, name, begun, shell } = params;
  const stopped = new AbortController();
  void firstSignal().then(() => stopped.abort());
  const bar = new ProgressBar({ shell, lineEveryMs: 0 });
  let latest = begun;
  let movedAtMs = systemClock.monotonicMs();
  let isWarned = false;
  let isLost = false;
  bar.show(progressOf(latest));
  while (latest.status === "running" && !stopped.signal.aborted) {
    await delay(systemClock, LOOK_MS, stopped.signal);
    try {
      const found = await look(holdfast, name, latest);
      if (found.made + found.passed > latest.made + latest.passed) {
        movedAtMs = systemClock.monotonicMs();
      }
      latest = found;
      isLost = false;
      bar.show(progressOf(latest));
      const isSilent = systemClock.monotonicMs() - movedAtMs >= SILENT_MS;
      if (isSilent && !isWarned && latest.status === "running") {
        const why = await silence(holdfast, name);
        isWarned = why !== null;
        if (why !== null) bar.complain(why);
      }
    } catch (error) {
      // The database may come back, and the backfill is in it.
      if (!isLost) bar.complain(describeExit(error)?.message ?? "");
      isLost = true;
    }
  }
  bar.end();
  const notCompleted =
    latest.status === "done" ? await countNotCompleted(holdfast, name, begun) : 0;
  await shell.say(lastWords(latest, notCompleted));
  await shell.answer({ ...latest, notCompleted });
  return latest.status === "done" && notCompleted === 0 ? EXIT.done : EXIT.no;
}

/** Its runs that failed or were cancelled: there is one backfill of a schedule at a time. */
async function countNotCompleted(
  { runs }: Holdfast,
  schedule: string,
  { createdAt }: Backfill,
): Promise<number> {
  let count = 0;
  for (const status of ["failed", "cancelled"] as const) {
    for (let cursor: string | null = ""; cursor !== null; ) {
      const after: { readonly cursor?: string } = cursor === "" ? {} : { cursor };
      const page = await runs.list({ schedule, mode: "backfill", status, limit: 1_000, ...after });
      const own = page.runs.filter((run) => run.createdAt >= createdAt);
      count += own.length;
      cursor = own.length < page.runs.length ? null : page.nextCursor;
    }
  }
  return count;
}

async function look(holdfast: Holdfast, name: string, last: Backfill): Promise<Backfill> {
  const backfills = await holdfast.schedules.backfills(name);
  return backfills.find(({ id }) => id === last.id) ?? last;
}

/** Why nothing happens; null while a run is being executed, which may take as long as it takes. */
async function silence(holdfast: Holdfast, schedule: string): Promise<string | null> {
  const running = await holdfast.runs.list({ schedule, status: "running", limit: 1 });
  if (running.runs.length > 0) return null;
  const { runs } = await holdfast.runs.list({ schedule, status: "pending", limit: 1 });
  const [waiting] = runs;
  return waiting
    ? `No progress for 10 s: run ${waiting.id} waits. Is an instance up that executes the job ${waiting.job}?`
    : "No progress for 10 s: no instance with the scheduler on seems to run. Start one: holdfast start";
}

function progressOf(backfill: Backfill): Progress {
  const { made, passed, total } = backfill;
  return { done: made + passed, total, text: backfillText(backfill) };
}

function lastWords(backfill: Backfill, notCompleted: number): string {
  const far = backfillText(backfill);
  switch (backfill.status) {
    case "done":
      return `Done: ${far}${notCompleted === 0 ? "" : `, ${notCompleted} did not complete`}.`;
    case "cancelled":
      return `Cancelled: ${far}.`;
    case "running":
      return `Left at ${far}. It goes on in the background where an instance runs with the scheduler on; --cancel ends it.`;
  }
}
