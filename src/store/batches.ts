// Reads the runs that a run has made, alone or in batches, and counts the entries of a batch. Every write happens under
// the fence of the creating run; under an old fence the store writes nothing and returns "stale". The engines store
// runs in different ways, so the writes are declared here and implemented there.

import type { RunId, RunStatus } from "../runs/rules/run.js";
import type { Audited } from "./audit.js";
import type { EnqueueResult, NewRun } from "./enqueue.js";
import { json, type Row, statusCode, statusOrder, textOrNull } from "./rows.js";
import { type RunRecord, toRunRecords } from "./runs/runs.js";
import { row, rows, run, type Statements, type StoreSession } from "./session.js";
import { RUN_PAGE } from "./sql/list-page.js";
import type { OpenWaits } from "./steps.js";

const LIST = /* sql */ `
select name, scheduled, errors, completed, failed, cancelled, case when ended_at is not null then then_run end as then_run
from {batch} where run = :run::uuid and name >= ' ' order by id`;

/** Runs that follow a batch are not children: their batch names them. */
const CHILDREN_OF = /* sql */ `
select r.id from {run} r
where r.parent = :parent::uuid
  and (:batch::text is null
    or r.batch = (select b.id from {batch} b where b.run = :parent::uuid and b.name = :batch::text))
  and r.id not in (select b.then_run from {batch} b where b.run = :parent::uuid and b.then_run is not null)`;

const CHILDREN = /* sql */ `
with page as materialized (
  select c.id from (${CHILDREN_OF}
    and r.id < coalesce(:before::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff') {not flattened}) c
  where :status::smallint is null or :status::smallint = coalesce(
    (select o.status from {outcome} o where o.id = c.id),
    case when exists (select 1 from {ready} y where y.id = c.id) or exists (select 1 from {waiting} w where w.id = c.id)
      then -1 else 0 end)
  order by c.id desc limit :limit
)
${RUN_PAGE}`;

/** The name of a batch that stands for a call: names of other batches never begin with a control character. */
function callName(generation: number, name: string): string {
  return `\u0001${generation} ${name}`;
}

const KNOWN_CALL = /* sql */ `select 1 as known from {wait} where run = :id::uuid and name = :name::text`;

const ADD_CALL = /* sql */ `
insert into {wait} (run, name, kind, generation, fence, since, key, child, batch, is_left)
values (:id::uuid, :name::text, 3, :generation::int, :fence::bigint, {now}, :job::text, :child::uuid, :batch::int,
  :isLeft::boolean)`;

/** For the statements that retry failed children. */
export const FAILED_CHILDREN = /* sql */ `
select c.id from (${CHILDREN_OF}
  and r.id > coalesce(:after::uuid, '00000000-0000-0000-0000-000000000000') {not flattened}) c
where (select o.status from {outcome} o where o.id = c.id) = 2 order by c.id limit :limit`;

/** On PostgreSQL it waits for another transaction that makes the same batch; it returns no row if there is one. */
const ADD_BATCH = /* sql */ `
insert into {batch} (run, name, created_at, scheduled, refused, errors, unended, completed, failed, cancelled,
  then_run, then_lane, then_policy, then_version, then_priority)
values (:parent::uuid, :name, {now}, 0, 0, '[]', 0, 0, 0, 0,
  :thenRun::uuid, :thenLane::int, :thenPolicy::int, :thenVersion::int, :thenPriority::smallint)
on conflict (run, name) do nothing returning id`;

/** The counts of the batch before its children are counted: counting them ends the batch if no child is open. */
const FILL_BATCH = /* sql */ `
update {batch} set scheduled = :scheduled::int, refused = :refused::int, errors = :errors where id = :batch::int`;

const MADE_BATCH = /* sql */ `
select scheduled, errors from {batch} where run = :parent::uuid and name = :name`;

const OUTCOMES = /* sql */ `select id, status from {outcome} where id {any :ids::uuid[]}`;

/** A run under the fence that its holder believes in. */
type Maker = { readonly id: RunId; readonly fence: number };

/** Why an entry of a batch has no child: `index` is its position in the list of the caller. */
export type BatchError = {
  readonly index: number;
  readonly code: string;
  readonly message: string;
};

export type NewBatch = {
  readonly parent: Maker;
  /** One batch of this name per run, over all attempts. */
  readonly name: string;
  readonly children: readonly { readonly index: number; readonly run: NewRun }[];
  /** Entries that were refused before the call. */
  readonly errors: readonly BatchError[];
  /** The run that follows the last child; the counts become its input. */
  readonly after: NewRun | null;
};

export type BatchAnswer = {
  readonly scheduled: number;
  readonly errors: readonly BatchError[];
};

/** One run that a held run calls and whose end it awaits. */
export type NewCall = {
  readonly parent: Maker;
  /** The name of the step. Each name and generation has one child. */
  readonly name: string;
  readonly generation: number;
  readonly child: NewRun;
  /** Whether the child continues if the parent ends. */
  readonly isLeft: boolean;
};

/** The present counts of a batch. */
export type BatchRecord = BatchAnswer & {
  readonly name: string;
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
  /** The run that was made when the last child had ended. */
  readonly after: RunId | null;
};

export type ChildFilter = {
  readonly parent: RunId;
  readonly batch?: string;
  readonly status?: RunStatus;
  /** Newest first; continues after this id. */
  readonly before?: RunId;
  readonly limit: number;
};

export type RetryChildren = {
  readonly parent: RunId;
  readonly batch?: string;
  /** Continues after this id. */
  readonly after?: RunId;
  readonly limit: number;
} & Audited;

/** The initial values of a batch. */
export type BatchCount = {
  readonly scheduled: number;
  readonly unended: number;
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly errors: readonly BatchError[];
};

export abstract class Batches {
  readonly #session: StoreSession;

  constructor(session: StoreSession) {
    this.#session = session;
  }

  /** Stores runs that a held run makes, each with its own result; the same id twice is the same run. */
  abstract enqueueChildren(params: {
    readonly parent: Maker;
    readonly runs: readonly NewRun[];
  }): Promise<readonly EnqueueResult[] | "stale">;

  /**
   * Stores a batch with its children in one transaction. If the run already has a batch of that name, it makes nothing
   * and returns the first result again. A batch without open children makes the run that follows at once.
   */
  abstract enqueue(batch: NewBatch): Promise<BatchAnswer | "stale">;

  /**
   * Stores a called run and the wait for its end in one transaction. If the wait already exists, it makes nothing.
   * Returns the open waits of the run.
   */
  abstract call(call: NewCall): Promise<OpenWaits | "stale">;

  /** Grants failed children one more attempt, in the order of their ids, a bounded number per call. */
  abstract retryChildren(params: RetryChildren): Promise<readonly RunId[]>;

  /** In the order in which they were made. */
  async list(run: RunId): Promise<readonly BatchRecord[]> {
    const found = await this.#session.read({ verb: "batches.list", sql: LIST, params: { run } });
    return found.map(toBatchRecord);
  }

  /** Newest first. */
  async children(filter: ChildFilter): Promise<readonly RunRecord[]> {
    const { parent, batch = null, before = null, limit } = filter;
    const status = filter.status === undefined ? null : statusOrder(filter.status);
    const params = { parent, batch, before, status, limit };
    const found = await this.#session.read({ verb: "batches.children", sql: CHILDREN, params });
    return toRunRecords(found);
  }
}

/**
 * Runs inside the transaction that stores a batch, before its children. Returns the number of the batch, or the result
 * of the call that stored it before. `numbers` are the lane and the policy of the run that follows.
 */
export function* beginBatch(
  { parent: { id: parent }, name, after }: NewBatch,
  numbers: { readonly lane: number; readonly policy: number } | null,
): Statements<{ readonly id: number } | { readonly made: BatchAnswer }> {
  const added = yield* row(ADD_BATCH, {
    parent,
    name,
    thenRun: after?.id ?? null,
    thenLane: numbers?.lane ?? null,
    thenPolicy: numbers?.policy ?? null,
    thenVersion: after?.version ?? null,
    thenPriority: after?.priority ?? null,
  });
  if (added) return { id: Number(added.id) };
  return { made: toBatchAnswer((yield* row(MADE_BATCH, { parent, name })) ?? {}) };
}

/** Runs after the children were stored: `counts` is for the statement that counts them, which differs by engine. */
export function* fillBatch(
  id: number,
  batch: NewBatch,
  answers: readonly EnqueueResult[],
): Statements<{
  readonly answer: BatchAnswer;
  readonly counts: Omit<BatchCount, keyof BatchAnswer>;
}> {
  const ids = foreignRuns(answers);
  const ended = ids.length === 0 ? [] : yield* rows(OUTCOMES, { ids });
  const endedAs = new Map(ended.map((each) => [String(each.id), Number(each.status)]));
  const { scheduled, errors, ...counts } = countBatch(batch, answers, endedAs);
  const filled = { batch: id, scheduled, refused: errors.length, errors: JSON.stringify(errors) };
  yield* run(FILL_BATCH, filled);
  return { answer: { scheduled, errors }, counts };
}

/** Represents a call as a batch with one child. */
export function batchOfCall({ parent, name, generation, child }: NewCall): NewBatch {
  const children = [{ index: 0, run: child }];
  return { parent, name: callName(generation, name), children, errors: [], after: null };
}

/** Runs inside a transaction: whether the call was stored before, with its reply lost. */
export function* isCalled({ parent, name }: NewCall): Statements<boolean> {
  return (yield* row(KNOWN_CALL, { id: parent.id, name })) !== undefined;
}

/** Runs at the end of that transaction: stores the wait for the child. */
export function* addCall(call: NewCall, batch: number): Statements<void> {
  const { parent, name, generation, child, isLeft } = call;
  const { id, fence } = parent;
  const { job } = child;
  yield* run(ADD_CALL, { id, fence, name, generation, job, child: child.id, batch, isLeft });
}

/** Runs that hold keys of this batch and existed before it. */
function foreignRuns(answers: readonly EnqueueResult[]): RunId[] {
  const own = ownRuns(answers);
  const ids = answers.flatMap((answer) => ("conflict" in answer ? [] : [answer.id]));
  return [...new Set(ids)].filter((id) => !own.has(id));
}

/**
 * How the entries of a batch count. An entry whose key belongs to a run that this batch did not make is not a child. If
 * that run has ended, its outcome counts at once; if it is live, the entry is refused, because nothing would report its
 * end to the batch. `endedAs` has the status codes of the foreign runs that are terminal.
 */
function countBatch(
  { children, errors: refused }: Pick<NewBatch, "children" | "errors">,
  answers: readonly EnqueueResult[],
  endedAs: ReadonlyMap<RunId, number>,
): BatchCount {
  const own = ownRuns(answers);
  const errors = [...refused];
  const ended = new Map<RunId, number>();
  for (const [at, { index, run }] of children.entries()) {
    const answer = answers[at] as EnqueueResult;
    const key = run.key?.key ?? "";
    if ("conflict" in answer) {
      const message = `The key "${key}" belongs to run ${answer.conflict}, which has another input.`;
      errors.push({ index, code: "KEY_CONFLICT", message });
      continue;
    }
    // Two entries with one key are one child.
    if (own.has(answer.id)) continue;
    const status = endedAs.get(answer.id);
    if (status !== undefined) ended.set(answer.id, status);
    else {
      const message = `The key "${key}" belongs to run ${answer.id}, which is still live and was not made by this batch.`;
      errors.push({ index, code: "KEY_LIVE", message });
    }
  }
  const statuses = [...ended.values()];
  const count = (code: number) => statuses.filter((status) => status === code).length;
  return {
    scheduled: own.size + ended.size,
    unended: own.size,
    completed: count(statusCode("completed")),
    failed: count(statusCode("failed")),
    cancelled: count(statusCode("cancelled")),
    errors: errors.sort((a, b) => a.index - b.index),
  };
}

function ownRuns(answers: readonly EnqueueResult[]): Set<RunId> {
  return new Set(
    answers.flatMap((answer) => ("conflict" in answer || answer.deduplicated ? [] : [answer.id])),
  );
}

/** The result of the call that made a batch. */
function toBatchAnswer(row: Row): BatchAnswer {
  return { scheduled: Number(row.scheduled), errors: json<BatchError[]>(row.errors) ?? [] };
}

function toBatchRecord(row: Row): BatchRecord {
  return {
    ...toBatchAnswer(row),
    name: String(row.name),
    completed: Number(row.completed),
    failed: Number(row.failed),
    cancelled: Number(row.cancelled),
    after: textOrNull(row.then_run),
  };
}
