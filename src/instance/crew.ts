// The crew of an instance: who executes runs here and at each target, the loop that polls for them, and
// the pulse that keeps their leases. A bounded pass has one of its own, which nothing outlives.

import { type Keeping, pruneSome } from "../operations/retention.js";
import type { Sends } from "../remote/dispatching.js";
import type { WakeHint } from "../runs/enqueue.js";
import type { Declarations } from "../schedules/reconcile.js";
import type { Ports } from "../shared/ports.js";
import type { Settlement, Store } from "../store/store.js";
import type { Bus } from "../telemetry/bus.js";
import type { Logger } from "../telemetry/log.js";
import type { Meters } from "../telemetry/meters.js";
import type { Tracing } from "../telemetry/tracing.js";
import type { BeginWindow } from "../worker/begin-window.js";
import { ClaimBudget } from "../worker/claim-planner.js";
import { FanOut } from "../worker/handler/fan-out.js";
import { type LeaseHeartbeat, mainThreadHeartbeat } from "../worker/passes.js";
import { Workers } from "../worker/pool.js";
import { Worker, type WorkerParams } from "../worker/worker.js";
import type { Config, StartConfig } from "./config.js";
import type { AnnouncedJobs, LocalJobs } from "./jobs.js";
import { Loop, type LoopParams } from "./loop.js";
import type { BoundedWorker } from "./tick-once.js";

/** What every crew of an instance has in common. */
export type CrewParts = {
  readonly store: Store;
  readonly holder: number;
  readonly instanceId: string;
  readonly config: Config;
  readonly ports: Ports;
  readonly bus: Bus;
  readonly logger: Logger;
  readonly meters: Meters;
  readonly tracing: Tracing | null;
  readonly jobs: AnnouncedJobs;
  readonly sends: Sends;
  readonly declarations: Declarations;
  readonly keeping: Keeping;
  readonly tidyLocks: () => Promise<void>;
  readonly begins: BeginWindow;
  readonly release: LoopParams["release"];
  readonly onStored: (stored: WakeHint) => void;
  readonly onGone: LoopParams["onGone"];
  readonly onSettled: (settlements: readonly Settlement[]) => void;
};

export type CrewOrders = Pick<WorkerParams, "concurrency" | "queues"> &
  Pick<LoopParams, "tick" | "alert"> &
  Pick<StartConfig, "heartbeat"> &
  Partial<Pick<WorkerParams, "allowance" | "onDrained">> & { readonly jobs: LocalJobs };

export type Crew = {
  readonly worker: Workers;
  readonly loop: Loop;
  readonly pulse: LeaseHeartbeat;
};

export async function newCrew(parts: CrewParts, orders: CrewOrders): Promise<Crew> {
  const { store, holder, ports, config, bus, meters, tracing } = parts;
  const { tick, alert, heartbeat, onDrained, jobs, ...workerOrders } = orders;
  const shared: Omit<WorkerParams, "jobs"> = {
    ...workerOrders,
    store,
    holder,
    ports,
    emit: bus.emit,
    listens: bus.listens,
    logger: parts.logger,
    meter: meters,
    tracing,
    begins: parts.begins,
    fanOut: new FanOut({
      store,
      tracing,
      clock: ports.clock,
      newId: () => ports.ids.run(),
      definitionOf: (job) => parts.jobs.definitionOf(job),
      onStored: parts.onStored,
    }),
    onSettled: (settlements) => {
      parts.onSettled(settlements);
      loop.settled(settlements);
    },
    onClaimed: () => loop.claimed(),
    onPostponed: (delayMs) => loop.pollWithin(delayMs),
    onContinued: () => worker.wake(),
    onLetGo: () => pulse.changed(),
    ...(onDrained ? { onDrained: () => worker.isDrained && onDrained() } : {}),
  };
  const here = new Worker({ ...shared, jobs: jobs.of(null) });
  const elsewhere = [...config.dispatch.targets.values()].map(
    ({ name, concurrency }) =>
      new Worker({
        ...shared,
        jobs: jobs.of(name),
        concurrency,
        isApart: true,
        room: () => parts.sends.room(name),
      }),
  );
  const worker = new Workers([here, ...elsewhere], ports);
  const pulse = await newHeartbeat(parts, { heartbeat, worker });
  const { declarations } = parts;
  const loop = new Loop({
    store,
    worker,
    holder,
    tick,
    release: parts.release,
    alert,
    ports,
    pulse,
    appetite: () => ({ jobs: jobs.names(), queues: orders.queues }),
    pollMs: config.pollMs,
    prune: () => pruneSome(parts.keeping),
    emit: bus.emit,
    instanceId: parts.instanceId,
    meter: meters,
    lookEachMinute: declarations.isWatchful ? () => declarations.reportVanished(store) : null,
    tidyLocks: parts.tidyLocks,
    onGone: parts.onGone,
    lookEachHour: () => declarations.recompute(store),
  });
  return { worker, loop, pulse };
}

/** One that claims so many runs at most, and is over when they are done or `end` says so. */
export async function boundedCrew(
  parts: CrewParts,
  { claimMax, end }: { readonly claimMax: number; readonly end: AbortSignal },
): Promise<BoundedWorker> {
  let onDrained: () => void = () => undefined;
  const over = new Promise<void>((resolve) => {
    onDrained = resolve;
    end.addEventListener("abort", () => resolve());
  });
  const crew = await newCrew(parts, {
    concurrency: claimMax,
    queues: null,
    jobs: parts.jobs.runnable,
    heartbeat: "main",
    tick: null,
    alert: null,
    allowance: new ClaimBudget(claimMax),
    onDrained,
  });
  return { ...crew, over };
}

/** A thread is not even loaded where nobody asks for one. */
async function newHeartbeat(
  { store, holder, config, ports, bus }: CrewParts,
  { heartbeat, worker }: { heartbeat: StartConfig["heartbeat"]; worker: Workers },
): Promise<LeaseHeartbeat> {
  if (heartbeat === "main") return mainThreadHeartbeat(store);
  const { threadHeartbeat } = await import("./thread-heartbeat.js");
  return threadHeartbeat({
    store,
    holder,
    config,
    clock: ports.clock,
    emit: bus.emit,
    held: () => worker.leases.held(),
  });
}
