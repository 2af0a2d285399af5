// The end of a simulation: nothing goes wrong any more, one healthy instance is left, and everything
// that was begun has to end (L).

import type { VirtualClock } from "../../virtual-clock.js";
import type { Checkers } from "../checkers/checkers.js";
import type { RunFacts } from "../checkers/run-places.js";
import type { EventLog } from "../event-log.js";
import type { Fleet } from "../fleet/fleet.js";
import type { RemoteSide } from "../fleet/remote-side.js";

export type QuietWorld = {
  readonly clock: VirtualClock;
  readonly chronicle: EventLog;
  readonly judges: Checkers;
  readonly fleet: Fleet;
  readonly elsewhere: RemoteSide;
  readonly pollMs: number;
  databaseNow(): number;
};

/** After this much quiet every run of the chaos must have ended. */
const QUIET_MAX_MS = 45 * 60_000;
const QUIET_STEP_MS = 5_000;
const FIRST_MS = 2_000;
const LAST_MS = 1_000;
const TOLD_MAX = 3;

/** Lets time pass until all is done, and judges what is not. */
export async function quieten(world: QuietWorld): Promise<void> {
  const { clock, chronicle, judges, fleet, elsewhere } = world;
  const survivor = fleet.leaveOne();
  chronicle.tell(() => `From here on nothing goes wrong; ${survivor.label} is left.`);
  const begun = new Set(judges.runs.unended());
  const isLeft = () => judges.runs.unended().some((run) => begun.has(run));
  await clock.advance(FIRST_MS);
  const deadline = clock.monotonicMs() + QUIET_MAX_MS;
  while (clock.monotonicMs() < deadline && isLeft()) {
    resume(world);
    if (judges.runs.unended().some(({ job }) => job === "remote")) void elsewhere.finish();
    await clock.advance(QUIET_STEP_MS);
  }
  await clock.advance(LAST_MS);
  judgeEnds(world, begun);
  judgeLiveness(world);
}

/** Until it is done: whoever is asked may crash by a poisonous run first. */
function resume({ fleet, judges }: QuietWorld): void {
  const process = fleet.survivor;
  if (!process?.isStarted || process.isDead) return;
  if (judges.pauses.isOn) void process.holdfast.resume().catch(() => undefined);
  for (const queue of ["side", "default"]) {
    if (!judges.runs.isQueuePaused(queue)) continue;
    void process.store.pauseQueue({ queue, isPaused: false }).catch(() => undefined);
  }
}

function judgeEnds({ judges, chronicle }: QuietWorld, begun: ReadonlySet<RunFacts>): void {
  const left = judges.runs.unended().filter((run) => begun.has(run));
  for (const { id, job, isGated, places } of left.slice(0, TOLD_MAX))
    chronicle.violate(
      "L",
      `Run ${id} (${job}, ${isGated ? "gated" : `in ${places}`}) has not ended ` +
        `${QUIET_MAX_MS / 60_000} min after faults stopped.`,
    );
}

function judgeLiveness({ judges, chronicle, pollMs, databaseNow }: QuietWorld): void {
  const lateMs = pollMs * 1.2 + 1_000;
  const now = databaseNow();
  for (const text of judges.schedules.overdue(now - lateMs)) chronicle.violate("L", text);
  for (const { fence, until, process } of judges.runs.leases.values()) {
    if (process?.isDead !== false && until + lateMs < now)
      chronicle.violate("L", `Fence ${fence} of the dead ${process?.label} still stands.`);
  }
}
