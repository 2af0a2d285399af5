// Draws the lock calls of a simulation and the faults around them, and performs the calls. Calls come in bursts, because
// a lock without contention proves nothing. The choices have a stream of their own, so that they change no other choice.

import type { LockHistory } from "../checkers/locks.js";
import { CALL_FAULTS, type Fault, type FaultKind } from "../faults/catalogue.js";
import type { SimulatedProcess } from "../fleet/process.js";
import { Draw } from "../random.js";
import type { Operation } from "./operation.js";

const BURSTS = 4;
const CALLS_MAX = 5;
const BURST_MS = 6_000;

const FAULTS: readonly (readonly [number, FaultKind])[] = [
  [3, "answer-lost"],
  [3, "crash-after-commit"],
  [2, "answer-late"],
  [2, "sent-late"],
  [2, "sent-twice"],
  [2, "not-sent"],
  [6, "stop"],
];

const AIMED: readonly (readonly [number, readonly string[]])[] = [
  [3, ["locks.acquire"]],
  [2, ["locks.extend"]],
  [3, ["locks.release"]],
];

export type LockPlan = {
  readonly operations: readonly Operation[];
  readonly faults: readonly Fault[];
};

/** Ids continue after those of `after`. */
export function drawLocks(
  seed: number,
  params: {
    readonly placeCount: number;
    readonly chaosMs: number;
    /** The last operation and fault that were drawn before. */
    readonly after: { readonly operation: Operation; readonly fault: Fault };
  },
): LockPlan {
  const { placeCount, chaosMs, after } = params;
  const draw = new Draw(seed, "locks");
  const operations: Operation[] = [];
  const faults: Fault[] = [];
  for (let burst = 0; burst < BURSTS; burst += 1) {
    const startsMs = draw.whole(60_000, chaosMs - 60_000);
    const calls = draw.whole(3, CALLS_MAX);
    for (let call = 0; call < calls; call += 1) {
      operations.push({
        ...after.operation,
        id: after.operation.id + 1 + operations.length,
        kind: "lock",
        afterMs: startsMs + draw.whole(0, BURST_MS),
        place: draw.whole(0, placeCount - 1),
        luck: draw.whole(0, 2 ** 31),
      });
    }
    const kind = draw.weighted(FAULTS);
    const isOfCall = (CALL_FAULTS as readonly string[]).includes(kind);
    faults.push({
      id: after.fault.id + 1 + faults.length,
      kind,
      afterMs: startsMs + draw.whole(0, isOfCall ? 0 : BURST_MS),
      place: draw.whole(0, placeCount - 1),
      verbs: isOfCall ? draw.weighted(AIMED) : null,
      ms: draw.logarithmic(500, 15_000),
    });
  }
  return { operations, faults };
}

// ── one call: work under the lock, sometimes longer than its lease, sometimes until the process dies ──

export type LockWorld = {
  readonly locks: LockHistory;
  worldMs(): number;
  /** Whether a clock is wrong, so that the holder may trust its lease for too long. */
  isExcused(process: SimulatedProcess): boolean;
  crash(process: SimulatedProcess, why: string): void;
};

const NAMES = 2;

export async function underLock(
  luck: number,
  process: SimulatedProcess,
  world: LockWorld,
): Promise<string> {
  const { locks } = world;
  const name = `lock-${luck % NAMES}`;
  const isWaiting = luck % 5 < 3;
  const workMs = 100 + ((luck >> 4) % 8_000);
  let endedMs = 0;
  const answer = await process.holdfast.lock(
    name,
    {
      lease: 1_500 + ((luck >> 7) % 5_000),
      ...(isWaiting ? { wait: 2_000 + ((luck >> 3) % 6_000), priority: (luck % 7) - 3 } : {}),
    },
    async ({ fence }) => {
      locks.begun(process, fence as number, { isExcused: world.isExcused(process) });
      await new Promise<void>((resolve) => process.clock.timer(workMs, resolve));
      if (luck % 11 === 0) world.crash(process, "while it held a lock");
      endedMs = world.worldMs();
      if (luck % 13 === 0) throw new Error("The work under the lock failed.");
    },
  );
  if (!answer.acquired) return `${name} is locked by ${answer.holder}`;
  const isExcused = world.isExcused(process);
  locks.succeeded(answer.fence as number, { endedMs, isExcused });
  return `${name} was held under ${answer.fence}`;
}
