// Keeps the pause of everything: one row for each pause; the current one has no end. From the commit on, every
// statement that would fire or claim reads the pause itself: an instance needs no notification first.

import type { Pause } from "../operations/rules/pause.js";
import { type Audited, addAudit, auditedWrite } from "./audit.js";
import { type Row, textOrNull } from "./rows.js";
import { row, rows, type Statements, type StoreSession } from "./session.js";

const COLUMNS = "at, until_at, by, note";

/** Returns no row if a pause is on already, with this note or another. */
const BEGIN = /* sql */ `
insert into {pause} as p (at, by, note) values ({now}, :by, :note)
on conflict ((until_at is null)) where until_at is null do update set note = excluded.note
where excluded.note <> coalesce(p.note, '')
returning ${COLUMNS}`;

const END = /* sql */ `
update {pause} set until_at = {greatest}({now}, at) where until_at is null returning ${COLUMNS}`;

/** Also for statements that will fire or claim on SQLite. */
export const PAUSE_ON = /* sql */ `select ${COLUMNS} from {pause} where until_at is null`;

/** A pause is kept for as long as an unrecorded tick may fall into it. */
const PRUNE = /* sql */ `
delete from {pause} where until_at < {now} - :keepMs::bigint
  and not exists (select 1 from {schedule} s where s.next_at < {pause}.until_at) returning id`;

/** Why an instance claims and fires nothing: everything is paused, or this instance is quiet. */
export type GlobalPause = {
  readonly kind: "all" | "quiet";
  readonly since: number;
  readonly note: string | null;
};

export class Pauses {
  readonly #session: StoreSession;

  constructor(session: StoreSession) {
    this.#session = session;
  }

  /** A second call keeps the time and the author, and the note if none is given. */
  async begin({
    by,
    note,
    audit,
  }: { readonly by: string | null; readonly note: string | null } & Audited): Promise<Pause> {
    for (;;) {
      const found = await this.#session.transaction(
        "pause.begin",
        { lost: "repeat" },
        function* () {
          const begun = yield* row(BEGIN, { by, note });
          if (begun) yield* addAudit(audit);
          return begun ?? (yield* row(PAUSE_ON));
        },
      );
      // Nothing is found on PostgreSQL if another caller ended the pause between the two statements.
      if (found) return toPause(found);
    }
  }

  /** The pause that this call has ended; null if none was on. */
  async end({ audit }: Audited = {}): Promise<Pause | null> {
    const ended = await auditedWrite(this.#session, { verb: "pause.end", sql: END, audit });
    return ended ? toPause(ended) : null;
  }

  /** The current pause. */
  async get(): Promise<Pause | null> {
    const [found] = await this.#session.read({ verb: "pause.get", sql: PAUSE_ON });
    return found ? toPause(found) : null;
  }
}

/** Removes pauses that ended before that time; returns how many. */
export function* prunePauses(keepMs: number): Statements<number> {
  return (yield* rows(PRUNE, { keepMs })).length;
}

function toPause(row: Row): Pause {
  return {
    at: Number(row.at),
    until: row.until_at === null ? null : Number(row.until_at),
    by: textOrNull(row.by),
    note: textOrNull(row.note),
  };
}

/** `paused` and `quiet` of a poll: JSON of since and note, or null. */
export function toGlobalPause({ paused, quiet }: Row): GlobalPause | null {
  const found = paused ?? quiet;
  if (found === null || found === undefined) return null;
  const [since, note] = (typeof found === "string" ? JSON.parse(found) : found) as unknown[];
  return { kind: paused == null ? "quiet" : "all", since: Number(since), note: textOrNull(note) };
}
