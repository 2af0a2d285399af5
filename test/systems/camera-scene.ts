// Gives the tests of the camera system its cameras, a folder for its pictures, and a look into them.

import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { crc32, inflateSync } from "node:zlib";
import { expect, onTestFinished } from "vitest";
import { startCameras } from "../../examples/camera-snapshots/cameras.js";
import type { AppDatabase } from "./app-database.js";
import { EXAMPLES } from "./places.js";

export const MIGRATIONS = path.join(EXAMPLES, "camera-snapshots/migrations");

export async function cameras() {
  const started = await startCameras();
  onTestFinished(() => started.close());
  return started;
}

export function pictures(): string {
  const folder = mkdtempSync(path.join(tmpdir(), "holdfast-pictures-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export function gate() {
  let open = () => {};
  const promise = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { promise, open };
}

export async function addCameras(db: AppDatabase, every: string, ids: readonly string[]) {
  for (const id of ids)
    await db.query("insert into cameras (id, every) values ($1, $2)", [id, every]);
}

export type Snapshot = {
  readonly run_id: string;
  readonly execution_id: string;
  readonly camera: string;
  readonly fence: number;
  readonly instance: string;
  readonly file: string;
};

export async function snapshots(db: AppDatabase): Promise<Snapshot[]> {
  const rows = await db.query("select * from snapshots order by fence");
  return rows.map((row) => ({ ...row, fence: Number(row.fence) })) as Snapshot[];
}

export function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) =>
    path.extname(name),
  );
}

/** Fails unless the file is a whole picture, every checksum of it right. */
export function expectPicture(file: string): void {
  const bytes = readFileSync(file);
  expect(bytes.subarray(0, 8).toString("latin1")).toBe("\x89PNG\r\n\x1a\n");
  const chunks = new Map<string, Buffer>();
  for (let at = 8; at < bytes.length; ) {
    const end = at + 8 + bytes.readUInt32BE(at);
    expect(crc32(bytes.subarray(at + 4, end))).toBe(bytes.readUInt32BE(end));
    chunks.set(bytes.toString("latin1", at + 4, at + 8), bytes.subarray(at + 8, end));
    at = end + 4;
  }
  expect([...chunks.keys()]).toEqual(["IHDR", "IDAT", "IEND"]);
  const header = chunks.get("IHDR") as Buffer;
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  expect(inflateSync(chunks.get("IDAT") as Buffer)).toHaveLength(height * (1 + 3 * width));
}
