// Claims and settles on PostgreSQL: one statement for both on one of two connections; a second exchange at the same
// time goes to the less busy one (docs/decisions/0002-two-connections.md).

import { MODES, type Mode, type RunId } from "../../runs/rules/run.js";
import { type Clock, delay } from "../../shared/ports.js";
import { splitTags } from "../../shared/trace-context.js";
import {
  type Claim,
  type ClaimedRun,
  type ClaimVerbs,
  countOf,
  type ExchangeParams,
  type ExchangeResult,
  type Grant,
  type HeldRun,
  isSameEnd,
  type Settlement,
  toEnding,
} from "../claims.js";
import { toPolicy } from "../jobs.js";
import { ClaimedDays, ClaimScanStart, FROM_THE_START } from "./claim-hints.js";
import type { PostgresLink, Row } from "./connection/connection.js";
import type { PostgresWork } from "./poll.js";
import type { PostgresSession } from "./session.js";
import { settlementColumns, wholeLeaseColumns } from "./settlements.js";
import * as sql from "./sql/exchange.js";

/** How often the claim of a limit is tried again after other transactions changed it; then the next poll tries. */
const CONTENDED_TRIES_MAX = 5;
/** How many limited runs are moved to their lines before they are claimed. */
const NEWCOMERS_MAX = 1_000;
const NOTHING = { claims: [], limitedInMs: null };

/** `isHeld`: runs are already held under this token, and these are the result. */
type Exchanged = ExchangeResult & { readonly isHeld?: boolean };

export class PostgresClaims implements ClaimVerbs {
  readonly #session: PostgresSession;
  readonly #clock: Clock;
  readonly #work: Pick<PostgresWork, "lineUp">;
  readonly #bound: ClaimScanStart;
  readonly #days: ClaimedDays;

  constructor(params: {
    readonly session: PostgresSession;
    readonly clock: Clock;
    readonly work: Pick<PostgresWork, "lineUp">;
  }) {
    this.#session = params.session;
    this.#clock = params.clock;
    this.#work = params.work;
    this.#bound = new ClaimScanStart(params.clock);
    this.#days = new ClaimedDays(params.clock);
  }

  /**
   * A statement of its own claims what limits let through, because it has to see the capacity that the settlements
   * before it released. All statements carry the same token, so a lost reply is read back as a whole.
   */
  async exchange(params: ExchangeParams): Promise<ExchangeResult> {
    const { limited, ...plain } = params;
    if (limited === undefined || params.limit === 0) return this.#exchange(plain);
    const isFirst = limited === "first";
    const settled: Exchanged =
      isFirst && params.settlements.length === 0 && !params.isNamed
        ? { claims: [], stale: [], hasContinued: false }
        : await this.#exchange(isFirst ? { ...plain, limit: 0 } : plain);
    if (settled.isHeld) return settled;
    const room = params.limit - countOf(settled.claims);
    const { claims: letThrough, limitedInMs } =
      room > 0 ? await this.#claimLimited({ ...params, limit: room }) : NOTHING;
    const rest = room - countOf(letThrough);
    const last =
      isFirst && rest > 0
        ? (await this.#exchange({ ...plain, settlements: [], isNamed: false, limit: rest })).claims
        : [];
    return {
      claims: [...settled.claims, ...letThrough, ...last],
      stale: settled.stale,
      hasContinued: settled.hasContinued,
      limitedInMs,
    };
  }

  /** A flow that another transaction is changing at this moment is tried again. */
  async #claimLimited(params: ExchangeParams): Promise<{
    readonly claims: readonly Claim[];
    readonly limitedInMs: number | null;
  }> {
    const { holder, token, jobs, queues, wantsSuspect, apart = [] } = params;
    const claims: Claim[] = [];
    let left = wantsSuspect ? Math.min(params.limit, 1) : params.limit;
    for (let tries = 1; ; tries += 1) {
      const [row] = await this.#session.attempt(
        "claims.exchange",
        this.#session.work,
        sql.EXCHANGE.claimLimited,
        {
          apart,
          holder,
          token,
          jobs,
          queues,
          limit: left,
          suspect: wantsSuspect,
          ...this.#days.range(),
        },
      );
      const taken = await this.#claimsIn(row, params);
      claims.push(...taken);
      left -= countOf(taken);
      const mayFindMore =
        Number(row?.contended) > 0 ||
        (row?.newcomers === true && (await this.#work.lineUp(NEWCOMERS_MAX)) > 0);
      if (left === 0 || !mayFindMore || tries === CONTENDED_TRIES_MAX) {
        const limitedInMs = row?.limitedInMs == null ? null : Number(row.limitedInMs);
        return { claims, limitedInMs };
      }
      await delay(this.#clock, tries);
    }
  }

  async #exchange(params: ExchangeParams): Promise<Exchanged> {
    const link = this.#linkFor(params.settlements);
    const { holder, token, jobs, queues, wantsSuspect, apart = [] } = params;
    const limit = wantsSuspect ? Math.min(params.limit, 1) : params.limit;
    const scope = `${wantsSuspect} ${queues} ${jobs}`;
    const low = this.#bound.low(scope);
    const sentMs = this.#clock.monotonicMs();
    const whole = params.isWholeLease === true ? wholeLeaseColumns(params.settlements) : null;
    const text = whole ? sql.EXCHANGE.finishWholeAndClaim : formOf(params);
    const [row] = await this.#session.attempt("claims.exchange", link, text, {
      ...(whole ?? columnsOf(params.settlements)),
      holder,
      token,
      jobs,
      queues,
      limit,
      low,
      shard: holder * 2 + (link === this.#session.beat ? 1 : 0),
      suspect: wantsSuspect,
      chance: params.random,
      isNamed: params.isNamed === true,
      apart,
      ...this.#days.range(),
    });
    const unapplied = ((row?.unapplied ?? []) as [string, number][]).map(([id, fence]) => ({
      id,
      fence,
    }));
    const stale =
      whole && row?.isSettled !== true
        ? await this.#settleApart(params)
        : await this.#staleAmong(unapplied, params.settlements);
    const isHeld = row?.isHeld === true;
    const claims = isHeld ? await this.byToken(params) : await this.#claimsIn(row, params);
    const count = countOf(claims);
    const head = row?.head === null || row?.head === undefined ? null : String(row.head);
    const tookMs = this.#clock.monotonicMs() - sentMs;
    if (limit > 0) this.#bound.saw({ scope, low, limit, count, head, tookMs });
    const hasContinued = Number(row?.continued ?? 0) > 0;
    if (isHeld || count === limit || low === FROM_THE_START)
      return { claims, stale, hasContinued, isHeld };
    const more = { settlements: [], isNamed: false, limit: limit - count };
    const rest = await this.#exchange({ ...params, ...more });
    return { claims: [...claims, ...rest.claims], stale, hasContinued };
  }

  /**
   * The end of a run that belongs to a schedule or a batch may wait for that row, which a caller's open transaction may
   * have locked: no heartbeat may wait behind it.
   */
  #linkFor(settlements: readonly Settlement[]): PostgresLink {
    const { work, beat } = this.#session;
    const mayWait = settlements.some(
      ({ schedule, batch, isLimited, mayWait }) =>
        schedule !== null || batch !== null || isLimited || mayWait,
    );
    return !mayWait && beat.inFlight < work.inFlight ? beat : work;
  }

  /** The lease is gone, or has lost some of its runs: the remaining ones are settled one by one. */
  async #settleApart(params: ExchangeParams): Promise<readonly Grant[]> {
    return (await this.#exchange({ ...params, isWholeLease: false, limit: 0 })).stale;
  }

  /** A settlement that was applied before, with its reply lost, is not stale; only history can tell. */
  async #staleAmong(
    unapplied: readonly Grant[],
    settlements: readonly Settlement[],
  ): Promise<readonly Grant[]> {
    if (unapplied.length === 0) return [];
    const rows = await this.#session.repeat("claims.exchange", sql.ENDINGS, {
      grants: JSON.stringify(unapplied),
    });
    const endings = new Map(rows.map((row) => [`${row.id} ${row.fence}`, row]));
    const sent = new Map(settlements.map((each) => [`${each.id} ${each.fence}`, each]));
    return unapplied.filter(({ id, fence }) => {
      const ending = endings.get(`${id} ${fence}`);
      const settlement = sent.get(`${id} ${fence}`);
      return !(ending && settlement && isSameEnd(settlement, toEnding(ending)));
    });
  }

  /** The claims in an answer. Those with runs from other days than were looked into are read again, from all days. */
  async #claimsIn(row: Row | undefined, params: ExchangeParams): Promise<readonly Claim[]> {
    const leases = (row?.claims ?? []) as readonly LeaseRow[];
    if (leases.every(({ ids }) => ids === null)) return claimsOf(row);
    const found = new Set((row?.ids ?? []) as readonly RunId[]);
    if (leases.every(({ ids }) => (ids ?? []).every((id) => found.has(id)))) return claimsOf(row);
    this.#days.missed();
    const fences = new Set(leases.map(({ fence }) => fence));
    return (await this.byToken(params)).filter(({ fence }) => fences.has(fence));
  }

  async byToken(params: {
    readonly holder: number;
    readonly token: string;
  }): Promise<readonly Claim[]> {
    const [row] = await this.#session.repeat("claims.byToken", sql.CLAIMS_BY_TOKEN, params);
    return claimsOf(row);
  }

  async held(grant: Grant): Promise<HeldRun | null> {
    const [row] = await this.#session.repeat("claims.held", sql.HELD, grant);
    const [claim] = claimsOf(row);
    if (!row || !claim) return null;
    return {
      holder: Number(row.holder),
      instance: String(row.instance),
      remoteBy: typeof row.remote_by === "string" ? row.remote_by : null,
      claim: { ...claim, runs: claim.runs.filter(({ id }) => id === grant.id) },
      heldMs: Number(row.held_ms),
      isCancelRequested: row.is_cancel_requested === true,
    };
  }
}

/** An idle worker has no settlements, and builds no columns of them. */
function columnsOf(settlements: readonly Settlement[]): Row {
  return settlements.length === 0 ? {} : settlementColumns(onceEach(settlements));
}

/** If the same run were settled twice in one exchange, it would be written twice. */
function onceEach(settlements: readonly Settlement[]): readonly Settlement[] {
  if (new Set(settlements.map(({ id }) => id)).size === settlements.length) return settlements;
  const seen = new Set(settlements.map(({ id, fence }) => `${id} ${fence}`));
  return settlements.filter(({ id, fence }) => seen.delete(`${id} ${fence}`));
}

/** The form with the fewest parts that these settlements need; sql/exchange.ts says what each of them saves. */
function formOf({ settlements }: ExchangeParams): string {
  if (settlements.length === 0) return sql.EXCHANGE.claim;
  if (settlements.some(({ isLimited, mayWait }) => isLimited || mayWait))
    return sql.EXCHANGE.settleLimitedAndClaim;
  const isPlainEnd = ({ to, schedule, batch }: Settlement) =>
    to !== "pending" && schedule === null && batch === null;
  return settlements.every(isPlainEnd) ? sql.EXCHANGE.finishAndClaim : sql.EXCHANGE.settleAndClaim;
}

// Reads claims: PostgreSQL returns the leases, and their runs as columns. Values that few runs have come in separate
// columns, by the ids of those runs.

type LeaseRow = Omit<Claim, "policy" | "runs"> & {
  readonly policy: readonly number[];
  readonly refunds: number;
  readonly laters: number;
  readonly extraAttempts: number;
  /** Its runs in the order of the claim; null if they are all runs that were found, in that order. */
  readonly ids: readonly RunId[] | null;
};

/** The columns of the runs, all in one order; null if no run was found. */
type Found = {
  readonly ids: readonly RunId[] | null;
  readonly inputs: readonly string[] | null;
  readonly dueAts: readonly number[] | null;
  /** Null if all were due when they were made. */
  readonly createdAts: readonly number[] | null;
  /** The values of all runs except `others`; null if no job gives them: then all runs are in `others`. */
  readonly version: number | null;
  readonly priority: number | null;
  readonly others: readonly Other[] | null;
};

/** Id, mode, version, priority, nominal time, schedule, batch, tags. */
type Other = readonly [
  RunId,
  number,
  number,
  number,
  number | null,
  number | null,
  number | null,
  readonly string[] | null,
];

const NO_TAGS: readonly string[] = [];

export function claimsOf(row: Row | undefined): readonly Claim[] {
  const leases = (row?.claims ?? []) as readonly LeaseRow[];
  const found = row as Found;
  const ids = found?.ids ?? [];
  const places = leases.some((lease) => lease.ids !== null)
    ? new Map(ids.map((id, place) => [id, place]))
    : null;
  const others = found?.others ? new Map(found.others.map((other) => [other[0], other])) : null;
  return leases.map((lease) => {
    const at = (id: RunId, place: number) => {
      const run = usualRun(lease, found, id, place);
      return others === null ? run : otherRun(run, others.get(id));
    };
    const runs =
      lease.ids === null
        ? ids.map(at)
        : lease.ids.flatMap((id) => {
            const place = places?.get(id);
            return place === undefined ? [] : at(id, place);
          });
    return {
      fence: lease.fence,
      job: lease.job,
      queue: lease.queue,
      attempt: lease.attempt,
      policy: toPolicy(lease.policy),
      leaseMs: lease.leaseMs,
      isSuspect: lease.isSuspect,
      isLimited: lease.isLimited,
      runs,
    };
  });
}

function usualRun(lease: LeaseRow, found: Found, id: RunId, place: number): ClaimedRun {
  const { inputs, dueAts, createdAts, version, priority } = found;
  const dueAt = dueAts?.[place] as number;
  return {
    id,
    input: inputs?.[place] as string,
    mode: MODES[0] as Mode,
    version: version ?? 0,
    priority: priority ?? 0,
    createdAt: createdAts === null ? dueAt : (createdAts[place] as number),
    dueAt,
    nominalAt: null,
    schedule: null,
    batch: null,
    tags: NO_TAGS,
    refunds: lease.refunds,
    laters: lease.laters,
    extraAttempts: lease.extraAttempts,
  };
}

function otherRun(run: ClaimedRun, other: Other | undefined): ClaimedRun {
  if (!other) return run;
  const [, mode, version, priority, nominalAt, schedule, batch, tags] = other;
  const own = { mode: MODES[mode] as Mode, version, priority, nominalAt, schedule, batch };
  return { ...run, ...own, ...(tags === null ? {} : splitTags(tags)) };
}
