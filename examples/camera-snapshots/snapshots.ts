// Snapshots of many cameras. The schedule sees to it that each tick is taken once, whoever is there; the lock, that
// nobody else looks through a camera meanwhile: a camera serves one caller at a time.

import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import type { Duration, Holdfast } from "holdfast";
import { type Kysely, sql } from "kysely";
import { z } from "zod";

export const snapshotInput = z.object({
  camera: z.string().regex(/^[a-z0-9-]+$/, "must be a camera such as cam-01"),
  /** How long to wait for the camera. Left out: a camera in use is skipped. */
  wait: z
    .string()
    .regex(/^\d+(ms|s|m)$/, "must be a time such as 30s")
    .default("0s"),
  /** Of waiting calls, the larger priority goes first. */
  priority: z.number().int().min(-100).max(100).default(0),
});

export const lockOf = (camera: string) => `camera ${camera}`;

const INSERT = `
  insert into snapshots (run_id, execution_id, camera, fence, instance, file) values ($1, $2, $3, $4, $5, $6)`;

export function defineSnapshots(
  holdfast: Holdfast,
  around: {
    readonly camerasUrl: string;
    /** Where pictures are stored. */
    readonly folder: string;
    /** How long an instance may be silent before another one takes its snapshot. */
    readonly lease?: Duration;
  },
) {
  return holdfast.job("snapshot", {
    input: snapshotInput,
    lease: around.lease ?? "30s",
    // Less than the six minutes of a lock: a hanging attempt releases its camera before others may take it.
    timeout: "5m",
    async run({ camera, wait, priority }, ctx) {
      // One for each attempt: a second one does not touch the picture of the first.
      const execution = `${ctx.runId}-${ctx.attempt}`;
      const file = path.join(around.folder, camera, `${execution}.png`);
      const held = await ctx.lock(lockOf(camera), { wait, priority, execution }, async (lock) => {
        const response = await fetch(`${around.camerasUrl}/${camera}`, {
          headers: { fence: String(lock.fence ?? 0) },
          signal: AbortSignal.any([lock.signal, ctx.signal]),
        });
        if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
        await mkdir(path.dirname(file), { recursive: true });
        await writeFile(file, Buffer.from(await response.arrayBuffer()));
      });
      // The camera is in use: this snapshot is skipped, and the log says who has it.
      if (!held.acquired)
        return { skipped: true, reason: "locked", holder: held.holder, until: held.until };
      // The row names the picture, which is whole by now; row and end of the run are one transaction.
      await ctx.commit((tx) => {
        tx.query(INSERT, [ctx.runId, execution, camera, held.fence, holdfast.instanceId, file]);
        return { file };
      });
    },
  });
}

/** A schedule for each camera that the table has. */
export async function scheduleCameras(
  holdfast: Holdfast,
  { db, snapshot }: { db: Kysely<unknown>; snapshot: ReturnType<typeof defineSnapshots> },
) {
  const { rows } = await sql<{ id: string; every: string }>`select * from cameras`.execute(db);
  for (const { id, every } of rows)
    holdfast.schedule(`snapshot of ${id}`, snapshot, { every, input: { camera: id } });
}
