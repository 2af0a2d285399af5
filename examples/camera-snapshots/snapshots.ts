// Snapshots of many cameras. That each tick is taken once, whoever is there, is the schedule's affair; that
// nobody else looks through a camera meanwhile is the lock's, because a camera serves one caller at a time.

import { mkdir, rename, writeFile } from "node:fs/promises";
import path from "node:path";
import type { Holdfast } from "holdfast";
import { z } from "zod";
import type { AppDatabase } from "../shared/database.js";

export const snapshotInput = z.object({
  camera: z.string().regex(/^[a-z0-9-]+$/, "must be a camera such as cam-01"),
  /** How long to wait for the camera. Without it a camera in use is left alone. */
  wait: z
    .string()
    .regex(/^\d+(ms|s|m)$/, "must be a time such as 30s")
    .default("0s"),
  /** Of those that wait, the larger goes first. */
  priority: z.number().int().min(-100).max(100).default(0),
});

export type SnapshotsOptions = {
  readonly db: AppDatabase;
  readonly camerasUrl: string;
  /** Where the pictures go. */
  readonly folder: string;
  /** How long an instance may be silent before its snapshot is another's. */
  readonly lease?: string;
};

export const lockOf = (camera: string) => `camera ${camera}`;

export function defineSnapshots(holdfast: Holdfast, options: SnapshotsOptions) {
  const { db, camerasUrl, folder, lease = "30s" } = options;

  return holdfast.job("snapshot", {
    input: snapshotInput,
    lease,
    // Less than the six minutes of a lock: one that hangs lets go of its camera before others may take it.
    timeout: "5m",
    async run({ camera, wait, priority }, ctx) {
      // One for each attempt: what a second one does is told apart from what the first one did.
      const executionId = `${ctx.runId}-${ctx.attempt}`;
      const held = await holdfast.lock(lockOf(camera), { wait, priority }, async (lock) => {
        const signal = AbortSignal.any([lock.signal, ctx.signal]);
        const picture = await look(`${camerasUrl}/${camera}`, { fence: lock.fence, signal });
        return store(picture, path.join(folder, camera, `${executionId}.png`));
      });
      if (!held.acquired) {
        const { holder, until } = held;
        ctx.log.info({ camera, holder }, "the camera is in use, this snapshot is left out");
        return { skipped: true, reason: "locked", holder, until: until?.toISOString() ?? null };
      }
      const row = [ctx.runId, executionId, camera, held.fence, holdfast.instanceId, held.value];
      await ctx.commit((tx) => db.within(tx, [[INSERT, row]], { file: held.value }));
    },
  });
}

const INSERT = `
  insert into snapshots (run_id, execution_id, camera, fence, instance, file) values ($1, $2, $3, $4, $5, $6)`;

/** A schedule for each camera that the table has. */
export async function scheduleCameras(
  holdfast: Holdfast,
  {
    db,
    snapshot,
  }: { readonly db: AppDatabase; readonly snapshot: ReturnType<typeof defineSnapshots> },
): Promise<void> {
  for (const { id, every } of await db.query("select id, every from cameras order by id"))
    holdfast.schedule(`snapshot of ${id}`, snapshot, {
      every: String(every),
      input: { camera: String(id) },
    });
}

async function look(
  url: string,
  { fence, signal }: { readonly fence: number | null; readonly signal: AbortSignal },
): Promise<Buffer> {
  const response = await fetch(url, { headers: { fence: String(fence ?? 0) }, signal });
  if (response.ok) return Buffer.from(await response.arrayBuffer());
  throw new Error(`the camera answered ${response.status}: ${await response.text()}`);
}

/** Whole or not at all, also if the process dies in between. */
async function store(picture: Buffer, file: string): Promise<string> {
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(`${file}.part`, picture);
  await rename(`${file}.part`, file);
  return file;
}
