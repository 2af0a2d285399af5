// Claims and settlements on SQLite: both in one short write transaction.

import type { HeldRun } from "../remote.js";
import type * as store from "../store.js";
import type { ExchangeVerbs } from "../store-of-parts.js";
import type { SqliteLeases } from "./leases.js";
import type { SqlitePause } from "./pause.js";
import type { SqliteSession } from "./session.js";

const NOTHING_SETTLED = { stale: [], hasContinued: false } as const;
const NOTHING_CLAIMED = { count: 0, freeAt: null } as const;

export class SqliteExchange implements ExchangeVerbs {
  readonly #asker: SqliteSession;
  readonly #leases: SqliteLeases;
  readonly #pause: SqlitePause;

  constructor(params: {
    readonly asker: SqliteSession;
    readonly leases: SqliteLeases;
    readonly pause: SqlitePause;
  }) {
    this.#asker = params.asker;
    this.#leases = params.leases;
    this.#pause = params.pause;
  }

  exchange(params: store.ExchangeParams): Promise<store.ExchangeAnswer> {
    return this.#asker.write("exchange", (now) => {
      const settled =
        params.settlements.length === 0 ? NOTHING_SETTLED : this.#leases.settle(params, now);
      const held = params.isNamed ? this.#leases.claimsByToken(params, now) : [];
      if (held.length > 0) return { ...settled, claims: held, limitedInMs: null };
      const mayClaim = params.limit > 0 && !this.#pause.isOn;
      const { count, freeAt } = mayClaim ? this.#leases.claim(params, now) : NOTHING_CLAIMED;
      const claims = count > 0 ? this.#leases.claimsByToken(params, now) : [];
      return { ...settled, claims, limitedInMs: freeAt === null ? null : freeAt - now };
    });
  }

  claimsByToken(params: {
    readonly holder: number;
    readonly token: string;
  }): Promise<readonly store.Claim[]> {
    return this.#asker.read((now) => this.#leases.claimsByToken(params, now));
  }

  heldRun(grant: store.Grant): Promise<HeldRun<store.Claim> | null> {
    return this.#asker.read((now) => this.#leases.held(grant, now));
  }
}
