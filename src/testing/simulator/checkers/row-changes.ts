// Records the row changes of a transaction with triggers, so that the checkers see the committed data and not the
// responses of the verbs.

/** One inserted, deleted or changed row: the kind of change, then the columns below. */
export type Note = readonly [kind: NoteKind, ...values: (string | number | null)[]];

/** The columns of each note. `old.` and `new.` are the row before and after the change. */
const COLUMNS = {
  "run+":
    "new.id, new.lane, new.policy, new.mode, new.schedule, new.nominal_at, new.key, new.parent, new.batch, iif(new.parent is null, null, new.input)",
  "run-": "old.id",
  "ready+": "new.id, new.attempt, new.losses, new.refunds, new.laters, new.extra, new.suspect",
  "ready-": "old.id",
  "waiting+":
    "new.id, new.attempt, new.losses, new.refunds, new.laters, new.extra, new.suspect, new.gate, new.wake_at, new.flow",
  "waiting~": "new.id, new.gate, new.wake_at, new.flow, new.asleep_at",
  "waiting-": "old.id",
  "lease+":
    "new.fence, new.holder, new.lane, new.policy, new.attempt, new.refunds, new.extra, new.until, new.ids, new.suspect",
  "lease~":
    "new.fence, old.holder, new.holder, old.until, new.until, old.ids, new.ids, new.started, new.cancels",
  "lease-": "old.fence, old.ids",
  "outcome+": "new.id, new.fence, new.status, new.attempt, new.holder, new.result",
  "outcome~": "new.id, new.status",
  "outcome-": "old.id, old.fence, old.status",
  "attempt+": "new.run, new.fence, new.attempt, new.ended",
  "progress+": "new.run, new.fence",
  "progress~": "new.run, new.fence",
  "log+": "new.run, new.fence, new.no",
  "log~": "new.run, new.fence, new.no",
  "tick+":
    "new.schedule, new.at, new.last_at, new.count, new.outcome, new.reason, new.run, new.version, new.evidence",
  "tick-": "old.schedule, old.at",
  "tick~": "new.schedule, new.at, new.outcome, old.outcome, new.reason",
  "schedule+":
    "new.id, new.name, new.version, new.definition, new.anchor_at, new.cursor_at, new.next_at, new.paused_at, new.broken_at, new.deleted_at, new.is_ended, new.revision, new.live",
  "schedule~":
    "new.id, new.name, new.version, new.definition, new.anchor_at, new.cursor_at, new.next_at, new.paused_at, new.broken_at, new.deleted_at, new.is_ended, new.revision, new.live",
  "queue+": "new.name, new.paused_at",
  "queue~": "new.name, new.paused_at",
  "pause+": "new.at, new.until_at",
  "pause~": "new.at, new.until_at",
  "key+": "new.job, new.key, new.run, new.input_hash",
  "key~": "new.job, new.key, new.run, new.input_hash",
  "key-": "old.job, old.key, old.run",
  "batch+": "new.id, new.run, new.name, new.then_run",
  "batch~":
    "new.id, new.scheduled, new.refused, new.unended, new.completed, new.failed, new.cancelled",
  "flow_run+": "new.run, new.flow, new.held",
  "flow_run-": "old.run",
  "backfill_run+": "new.schedule, new.at, new.backfill, new.run",
  "delivery+": "new.schedule, new.id, new.run",
  "calendar+": "new.name, new.rules",
  "calendar~": "new.name, new.rules",
  "step+": "new.run, new.no, new.name, new.kind, new.fence, new.value, new.error, new.child",
  "step~": "new.run, new.no",
  "step-": "old.run, old.no, old.name",
  "wait+":
    "new.run, new.name, new.kind, new.generation, new.fence, new.until, new.signal, new.key, new.signal_since, new.child",
  "wait~":
    "new.run, new.name, new.kind, old.until, new.until, old.ended_at, new.ended_at, old.child, new.child",
  "wait-": "old.run, old.name",
  "signal+": "new.name, new.key, new.value, new.at",
  "signal~": "new.name, new.key, old.value, new.value, old.at, new.at",
  "signal-": "old.name, old.key",
  "instance+": "new.no, new.id",
  "lane+": "new.id, new.queue, new.job",
  "lock+": "new.fence, new.name, new.holder, new.until",
  "lock~": "new.fence, new.name, new.holder, old.holder, new.until",
  "lock-": "old.fence, old.name",
  "lock_history+": "new.fence, new.state, new.until",
  "policy+": "new.id, new.lease_ms, new.attempts, new.on_lost",
} as const;

export type NoteKind = keyof typeof COLUMNS;

const WHEN = { "+": "insert", "-": "delete", "~": "update" } as const;

/** The function that triggers call. */
export const NOTE_FUNCTION = "holdfast_note";

/** The triggers are temporary: they belong to the connection, and the schema stays as in production. */
export function noteTriggers(): string {
  return Object.entries(COLUMNS)
    .map(([kind, columns], at) => {
      const table = `holdfast_${kind.slice(0, -1)}`;
      const when = WHEN[kind.at(-1) as keyof typeof WHEN];
      return `create temp trigger note_${at} after ${when} on main.${table} begin select ${NOTE_FUNCTION}('${kind}', ${columns}); end;`;
    })
    .join("\n");
}
