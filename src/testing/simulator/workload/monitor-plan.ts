// A monitor, and when what it watches checks in. A stream of choices of its own: what else a seed does
// stays.

import { monitorJob } from "../../../schedules/rules/monitor.js";
import type { ScheduleOptions } from "../../../schedules/rules/schedule.js";
import { Draw } from "../random.js";
import type { Operation, OperationKind } from "./operation.js";

export const MONITOR = "watched";
/** What the runs of check-ins have in place of a job. */
export const MONITOR_JOB = monitorJob(MONITOR);

const PINGS = 12;
const FIRST_MS = 3_000;

/** What the monitor looks like, at first and after each edit. */
export function monitorOptions(luck: number): ScheduleOptions & { readonly monitor: true } {
  const every = (["4m", "6m", "9m"] as const)[luck % 3] ?? "4m";
  const grace = (["20s", "60s", "2m"] as const)[(luck >> 3) % 3] ?? "60s";
  return { monitor: true, every, grace };
}

/** Ids go on after `last`. */
export function drawMonitor(
  seed: number,
  params: { readonly placeCount: number; readonly chaosMs: number; readonly last: Operation },
): readonly Operation[] {
  const { placeCount, chaosMs, last } = params;
  const draw = new Draw(seed, "monitor");
  const operations: Operation[] = [];
  const add = (kind: OperationKind, afterMs: number) =>
    operations.push({
      ...last,
      id: last.id + 1 + operations.length,
      kind,
      afterMs,
      schedule: MONITOR,
      place: draw.whole(0, placeCount - 1),
      luck: draw.whole(0, 2 ** 31),
    });
  const later = () => draw.whole(60_000, chaosMs - 30_000);
  add("putMonitor", FIRST_MS);
  for (let ping = 0; ping < PINGS; ping += 1) add("ping", later());
  if (draw.isTrue(0.5)) add("putMonitor", later());
  if (draw.isTrue(0.3)) {
    const pausedMs = later();
    add("pause", pausedMs);
    add("resume", pausedMs + draw.whole(10_000, 400_000));
  }
  return operations;
}
