// One call of `holdfast.lock` in a simulation: it works under the lock for a while, sometimes for
// longer than its lease, sometimes until its process dies.

import type { LockHistory } from "../checkers/locks.js";
import type { SimulatedProcess } from "../fleet/process.js";

export type LockWorld = {
  readonly locks: LockHistory;
  worldMs(): number;
  /** Whether a clock lies, so that trust may last longer than the lease. */
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
