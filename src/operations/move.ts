// Moving house: all that a SQLite file holds, into an empty PostgreSQL database. Both are looked at
// first; the file is only read.

import { systemClock } from "../shared/adapters/clock.js";
import { systemRandom } from "../shared/adapters/random.js";
import { ConfigurationError, type Problem } from "../shared/errors.js";
import { type MoveAnswer, type MoveProgress, moveToPostgres } from "../store/move.js";
import { storeFor } from "../store/open.js";

export type { MoveAnswer, MoveProgress };

export async function moveDatabase(params: {
  /** A SQLite file, for example "sqlite:/srv/app.db". */
  readonly from: string;
  /** A PostgreSQL database that holds nothing of ours yet. */
  readonly to: string;
  /** @default "holdfast" */
  readonly schema?: string;
  /** Also while instances live; what they do meanwhile stays behind. @default false */
  readonly evenIfLive?: boolean;
  readonly onProgress?: (progress: MoveProgress) => void;
  /** Ends it after a batch; the same call goes on from there. */
  readonly signal?: AbortSignal;
}): Promise<MoveAnswer> {
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
  const chance = systemRandom;
  // Tables of another version are refused, and the new ones are made.
  for (const { database, migrate, mayCreate } of [
    { database: from, migrate: "check", mayCreate: false },
    { database: to, migrate: "auto", mayCreate: true },
  ] as const) {
    const synchronous = "FULL";
    const store = storeFor({ database, schema, synchronous, migrate, mayCreate, clock, chance });
    await store.open();
    await store.close();
  }
  return moveToPostgres({
    file,
    url: to,
    schema,
    clock,
    chance,
    evenIfLive,
    onProgress: onProgress ?? (() => undefined),
    signal,
  });
}
