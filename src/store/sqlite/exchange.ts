// Claims and settlements on SQLite: both in one short write transaction.

import type {
  Claim,
  ClaimVerbs,
  ExchangeParams,
  ExchangeResult,
  Grant,
  HeldRun,
} from "../claims.js";
import { PAUSE_ON } from "../pause.js";
import type { LeaseRows } from "./lease-rows.js";
import type { SqliteSession } from "./session.js";

const NOTHING_SETTLED = { stale: [], hasContinued: false } as const;
const NOTHING_CLAIMED = { count: 0, freeAt: null } as const;

export class SqliteClaims implements ClaimVerbs {
  readonly #session: SqliteSession;
  readonly #leases: LeaseRows;

  constructor(params: {
    readonly session: SqliteSession;
    readonly leases: LeaseRows;
  }) {
    this.#session = params.session;
    this.#leases = params.leases;
  }

  exchange(params: ExchangeParams): Promise<ExchangeResult> {
    return this.#session.transact("claims.exchange", (now) => {
      const settled =
        params.settlements.length === 0 ? NOTHING_SETTLED : this.#leases.settle(params, now);
      const held = params.isNamed ? this.#leases.claimsByToken(params, now) : [];
      if (held.length > 0) return { ...settled, claims: held, limitedInMs: null };
      const mayClaim = params.limit > 0 && this.#session.file.get(PAUSE_ON) === undefined;
      const { count, freeAt } = mayClaim ? this.#leases.claim(params, now) : NOTHING_CLAIMED;
      const claims = count > 0 ? this.#leases.claimsByToken(params, now) : [];
      return { ...settled, claims, limitedInMs: freeAt === null ? null : freeAt - now };
    });
  }

  byToken(params: { readonly holder: number; readonly token: string }): Promise<readonly Claim[]> {
    return this.#session.look((now) => this.#leases.claimsByToken(params, now));
  }

  held(grant: Grant): Promise<HeldRun | null> {
    return this.#session.look((now) => this.#leases.held(grant, now));
  }
}
