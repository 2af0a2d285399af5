// Reads runs: one, lists of them and their attempts. Declares what operators do to one run, which each engine does its own
// way: it changes leases, limits, schedules and batches.

import {
  ATTEMPT_ENDS,
  type AttemptEnd,
  MODES,
  type Mode,
  type RunId,
  type RunStatus,
  type TerminalStatus,
} from "../../runs/rules/run.js";
import { idsFrom } from "../../shared/id.js";
import { splitTags } from "../../shared/trace-context.js";
import { type Audited, addAudit } from "../audit.js";
import { removeEnded } from "../retention.js";
import { modeCode, numberOrNull, type Row, statusOf, textOrNull } from "../rows.js";
import { row, type Statements, type StoreSession } from "../session.js";
import { idsWithDigits, pageOf, RUN_PAGE } from "../sql/list-page.js";
import { type PendingReason, readPendingReason } from "./pending-reason.js";
import { type RunStepsParams, readRunSteps } from "./run-steps.js";

const GET = /* sql */ `select * from {run_state} where id = :id::uuid`;

/** Which table the ids of a filtered list come from: the state of a run is its table, so each status has its own. */
const SOURCES = {
  any: "select x.id, x.lane from {run} x",
  pending: "select x.id, x.lane from {ready} x union all select x.id, x.lane from {waiting} x",
  running: "select m.value as id, x.lane from {lease} x cross join {each x.ids as m}",
  asleep: "select x.id, x.lane from {waiting} x where x.asleep_at is not null",
  completed: "select x.id, x.lane from {outcome} x where x.status = 1",
  failed: "select x.id, x.lane from {outcome} x where x.status = 2",
  cancelled: "select x.id, x.lane from {outcome} x where x.status = 3",
} as const;

/**
 * The newest ids that match a filter. A text of six characters or more also finds the beginning or the end of an id.
 */
const matching = (status: keyof typeof SOURCES) => /* sql */ `
select s.id from (${SOURCES[status]}) s
where s.id < coalesce(:before::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  and s.id >= coalesce(:since::uuid, '00000000-0000-0000-0000-000000000000')
  and (:job::text is null or s.lane {any select l.id from {lane} l where l.job = :job::text})
  and exists (
    select 1 from {run} r where r.id = s.id
      and (:schedule::text is null or r.schedule = (select c.id from {schedule} c where c.name = :schedule::text))
      and (:mode::smallint is null or r.mode = :mode::smallint)
      and (:tag::text is null or :tag::text {any r.tags})
      and (:text::text is null or {instr}(lower(r.input), lower(:text::text)) > 0
        or r.key = :text::text or r.id::text = :text::text
        or (length(:text::text) >= 6 and lower(:text::text) in (
          substr(r.id::text, 37 - length(:text::text)), substr(r.id::text, 1, length(:text::text)))))
    {not flattened})
order by s.id desc limit :limit`;

const SELECT = statements(matching);
const LIST = statements(
  (status) => /* sql */ `with page as materialized (${matching(status)})\n${RUN_PAGE}`,
);

/** How many ids a page of a selection has at most. */
const SELECTED_MAX = 1_000;

const WITH_DIGITS = idsWithDigits("run");

/** Codes below ten are attempts that did not end their run; the outcome's status follows at ten. */
const ATTEMPTS = /* sql */ `
select a.attempt, a.fence, i.id as holder, a.ended, a.started_at, a.ended_at, a.error
from {attempt} a left join {instance} i on i.no = a.holder where a.run = :id::uuid
union all
select o.attempt, o.fence, i.id, o.status + 10, o.started_at, o.finished_at, o.error
from {outcome} o left join {instance} i on i.no = o.holder where o.id = :id::uuid and o.fence is not null
order by 2`;

const KNOWN = /* sql */ `select r.id from {run} r where r.id = :id::uuid`;

const TERMINAL = /* sql */ `select id from {outcome} where id {any :ids::uuid[]}`;

export type RunRecord = {
  readonly id: RunId;
  readonly job: string;
  readonly queue: string;
  readonly status: RunStatus;
  readonly mode: Mode;
  readonly priority: number;
  readonly attempt: number;
  readonly attemptsMax: number;
  readonly fence: number | null;
  readonly input: string;
  readonly result: string | null;
  readonly error: string | null;
  readonly schedule: string | null;
  /** The run that made it. */
  readonly parent: RunId | null;
  readonly nominalAt: number | null;
  readonly createdAt: number;
  readonly dueAt: number;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
  readonly updatedAt: number;
  readonly heartbeatAt: number | null;
  readonly holder: string | null;
  readonly leaseUntil: number | null;
  readonly key: string | null;
  readonly tags: readonly string[];
  /** The W3C trace context of the call that enqueued the run. */
  readonly trace?: string;
  readonly cancelRequestedAt: number | null;
  /** How many items it has, by outcome. */
  readonly items: Readonly<Record<string, number>>;
  /** Set on the last run of a list that ends early because it has all the bytes of a page: more follow. */
  readonly isFollowed?: boolean;
};

export type AttemptRecord = {
  readonly attempt: number;
  readonly fence: number;
  readonly holder: string;
  readonly end: AttemptEnd | TerminalStatus;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly error: string | null;
};

export type RunFilter = {
  readonly status?: RunStatus;
  /** Only runs that are suspended until one of their waits ends. */
  readonly isAsleep?: boolean;
  readonly job?: string;
  readonly schedule?: string;
  readonly mode?: Mode;
  readonly tag?: string;
  readonly text?: string;
  /** Newest first; continues after this id. */
  readonly before?: RunId;
  /** None whose id is smaller. */
  readonly since?: RunId;
  readonly limit: number;
};

/** A page of ids, newest first. `next` continues as `before`; null: these were the last. */
type RunSelection = { readonly ids: readonly RunId[]; readonly next: RunId | null };

export type CancelResult = "cancelled" | "requested" | "already_terminal" | "not_found";
export type RetryResult = "pending" | "not_terminal" | "completed" | "not_found";
export type RemoveResult = "removed" | "not_terminal" | "not_found";

export abstract class Runs {
  readonly #session: StoreSession;

  constructor(session: StoreSession) {
    this.#session = session;
  }

  abstract cancel(
    params: { readonly id: RunId; readonly random: number } & Audited,
  ): Promise<CancelResult>;
  /** For runs that no schedule made; the others are revived under their schedule's row. */
  abstract retry(params: { readonly id: RunId } & Audited): Promise<RetryResult>;
  /** Removes a terminal run and all its rows. */
  remove({ id, audit }: { readonly id: RunId } & Audited): Promise<RemoveResult> {
    const { engine } = this.#session;
    return this.#session.transaction(
      "runs.remove",
      { lost: "repeat" },
      function* (): Statements<RemoveResult> {
        if ((yield* removeEnded(engine, { ids: [id] })) > 0) {
          yield* addAudit(audit);
          return "removed";
        }
        return (yield* row(KNOWN, { id })) ? "not_terminal" : "not_found";
      },
    );
  }

  async get(id: RunId): Promise<RunRecord | null> {
    const [found] = await this.#session.read({ verb: "runs.get", sql: GET, params: { id } });
    return found ? toRunRecord(found) : null;
  }

  /** Newest first. Long values are cut to their beginning. */
  async list(filter: RunFilter): Promise<readonly RunRecord[]> {
    const sql = LIST[sourceOf(filter)];
    const params = filterParams(filter);
    return toRunRecords(await this.#session.read({ verb: "runs.list", sql, params }));
  }

  /** The ids that `list` would find, without reading the runs: for actions on many. At most 1,000 at once. */
  async select(filter: RunFilter): Promise<RunSelection> {
    const limit = Math.min(filter.limit, SELECTED_MAX);
    const sql = SELECT[sourceOf(filter)];
    // Reads one more, which shows whether others follow.
    const params = filterParams({ ...filter, limit: limit + 1 });
    const ids = idsIn(await this.#session.read({ verb: "runs.select", sql, params }));
    const page = ids.slice(0, limit);
    return { ids: page, next: ids.length > limit ? (page.at(-1) ?? null) : null };
  }

  /**
   * Ids that begin with these digits, and ids among the newest 20,000 runs that end with them. The beginning is a range
   * of the primary key; no index has the end, so that search is bounded.
   */
  async withDigits({
    digits,
    limit,
  }: {
    readonly digits: string;
    readonly limit: number;
  }): Promise<readonly RunId[]> {
    const params = { ...idsFrom(digits), digits, limit };
    return idsIn(await this.#session.read({ verb: "runs.withDigits", sql: WITH_DIGITS, params }));
  }

  /** In the order of their claims. */
  async attempts(id: RunId): Promise<readonly AttemptRecord[]> {
    const params = { id };
    const found = await this.#session.read({ verb: "runs.attempts", sql: ATTEMPTS, params });
    return found.map(toAttemptRecord);
  }

  /** Of these runs, the terminal ones. */
  async terminal(ids: readonly RunId[]): Promise<readonly RunId[]> {
    const params = { ids };
    return idsIn(await this.#session.read({ verb: "runs.terminal", sql: TERMINAL, params }));
  }

  /** The finished steps and waits of a run after a number, and its open ones. */
  steps(params: RunStepsParams) {
    return readRunSteps(this.#session, params);
  }

  /** Null if the run is not pending. */
  pendingReason(id: RunId): Promise<PendingReason | null> {
    return readPendingReason(this.#session, id);
  }
}

/** One statement for each status, and one for any. */
function statements<Statement>(of: (status: keyof typeof SOURCES) => Statement) {
  return {
    any: of("any"),
    pending: of("pending"),
    asleep: of("asleep"),
    running: of("running"),
    completed: of("completed"),
    failed: of("failed"),
    cancelled: of("cancelled"),
  };
}

function sourceOf({ status, isAsleep }: RunFilter): keyof typeof SOURCES {
  return isAsleep ? "asleep" : (status ?? "any");
}

function filterParams({ mode, limit, ...filter }: RunFilter): Row {
  const { before = null, since = null, job = null, schedule = null } = filter;
  const { tag = null, text = null } = filter;
  const modeNumber = mode === undefined ? null : modeCode(mode);
  return { before, since, job, schedule, tag, text, limit, mode: modeNumber };
}

function idsIn(rows: readonly Row[]): RunId[] {
  return rows.map(({ id }) => String(id));
}

export function toRunRecords(rows: readonly Row[]): readonly RunRecord[] {
  return pageOf(rows, toRunRecord);
}

function toRunRecord(row: Row): RunRecord {
  return {
    id: String(row.id),
    job: String(row.job),
    queue: String(row.queue),
    status: statusOf(Number(row.status)),
    mode: MODES[Number(row.mode)] as Mode,
    priority: Number(row.priority),
    attempt: Number(row.attempt),
    attemptsMax: Number(row.attempts_max),
    fence: numberOrNull(row.fence),
    input: String(row.input),
    result: textOrNull(row.result),
    error: textOrNull(row.error),
    schedule: textOrNull(row.schedule),
    parent: textOrNull(row.parent),
    nominalAt: numberOrNull(row.nominal_at),
    createdAt: Number(row.created_at),
    dueAt: Number(row.due_at),
    startedAt: numberOrNull(row.started_at),
    finishedAt: numberOrNull(row.finished_at),
    updatedAt: Number(row.updated_at),
    heartbeatAt: numberOrNull(row.heartbeat_at),
    holder: textOrNull(row.holder),
    leaseUntil: numberOrNull(row.lease_until),
    key: textOrNull(row.key),
    ...splitTags(listOf(row.tags)),
    cancelRequestedAt: numberOrNull(row.cancel_requested_at),
    items: countsOf(row.items),
  };
}

/** One damaged row must not hide its neighbours: an unreadable value is shown as nothing. */
function listOf(json: unknown): readonly string[] {
  const found = parsedOr(json, []);
  return Array.isArray(found) ? found.map(String) : [];
}

function countsOf(json: unknown): Record<string, number> {
  const found = parsedOr(json, {});
  return typeof found === "object" && found !== null ? (found as Record<string, number>) : {};
}

function parsedOr(json: unknown, otherwise: unknown): unknown {
  if (json === null || json === undefined) return otherwise;
  try {
    return JSON.parse(String(json)) as unknown;
  } catch {
    return otherwise;
  }
}

function toAttemptRecord(row: Row): AttemptRecord {
  const code = Number(row.ended);
  return {
    attempt: Number(row.attempt),
    fence: Number(row.fence),
    holder: String(row.holder ?? "unknown"),
    end: code < 10 ? (ATTEMPT_ENDS[code] ?? "failed") : (statusOf(code - 10) as TerminalStatus),
    startedAt: Number(row.started_at),
    endedAt: Number(row.ended_at),
    error: textOrNull(row.error),
  };
}
