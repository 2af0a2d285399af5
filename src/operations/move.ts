// Copies a SQLite file into an empty PostgreSQL database, for `holdfast migrate`. Both are checked first; the file is only
// read.

import { systemClock } from "../shared/adapters/clock.js";
import { systemRandom } from "../shared/adapters/random.js";
import { ConfigurationError, type Problem } from "../shared/errors.js";
import { type MoveProgress, type MoveResult, moveToPostgres } from "../store/move/move.js";
import { storeFor } from "../store/open.js";

export type { MoveProgress, MoveResult };

export async function moveDatabase(params: {
  /** A SQLite file, for example "sqlite:/srv/app.db". */
  readonly from: string;
  /** A PostgreSQL database without tables of ours. */
  readonly to: string;
  /** @default "holdfast" */
  readonly schema?: string;
  /** Copy even while instances are live; their later changes are not copied. @default false */
  readonly evenIfLive?: boolean;
  readonly onProgress?: (progress: MoveProgress) => void;
  /** Stops after a batch; a repeated call continues from there. */
  readonly signal?: AbortSignal;
}): Promise<MoveResult> {
  const { from, to, schema = "holdfast", evenIfLive = false, onProgress, signal } = params;
  const file = /^sqlite:(?:\/\/(?=\/))?(.+)$/.exec(from)?.[1];
  const problems: Problem[] = [];
  if (file === undefined || file === ":memory:")
    problems.push({ field: "from", message: 'must be a SQLite file such as "sqlite:app.db"' });
  if (!/^postgres(ql)?:/.test(to))
    problems.push({
      field: "to",
      message: 'must be a PostgreSQL database such as "postgres://user@host:5432/name"',
    });
  if (file === undefined || problems.length > 0) throw new ConfigurationError(problems);
  const clock = systemClock;
  const random = systemRandom;
  // Refuses tables of another version, and creates the new ones.
  for (const { database, migrate, mayCreate } of [
    { database: from, migrate: "check", mayCreate: false },
    { database: to, migrate: "auto", mayCreate: true },
  ] as const) {
    const synchronous = "FULL";
    const store = storeFor({ database, schema, synchronous, migrate, mayCreate, clock, random });
    await store.open();
    await store.close();
  }
  return moveToPostgres({
    file,
    url: to,
    schema,
    clock,
    random,
    evenIfLive,
    onProgress: onProgress ?? (() => undefined),
    signal,
  });
}
