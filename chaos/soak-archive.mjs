// Reads ended runs before retention removes them, so that the whole history can be checked at the end.

import { ATTEMPTS, INSTANCES, OUTCOME_COLUMNS, plain, RUNS, readTables } from "./tables.mjs";

/** @typedef {import("./tables.mjs").Row} Row */
/** @typedef {import("./tables.mjs").Reader} Reader */

/** A run ends at the time of its statement, but becomes visible only with the commit. */
const OVERLAP_MS = 30_000;

export class Archive {
  /** @type {Map<string, Row>} */
  #runs = new Map();
  /** @type {Map<string, Row>} */
  #outcomes = new Map();
  /** @type {Map<string, Row>} */
  #attempts = new Map();
  /** @type {Map<number, Row>} */
  #instances = new Map();
  #sinceMs = 0;

  get size() {
    return this.#outcomes.size;
  }

  /**
   * Reads the runs that have ended since the last call.
   * @param {Reader} reader
   * @returns {Promise<{ run: Row, outcome: Row, isFirstTry: boolean }[]>} the runs that were not read before
   */
  async take(reader) {
    const since = this.#sinceMs - OVERLAP_MS;
    const outcomes = await reader.all(
      `select ${OUTCOME_COLUMNS}, extract(epoch from pg_xact_commit_timestamp(xmin)) * 1000 as committed
       from {outcome} where finished_at > ${since}`,
    );
    const fresh = outcomes.filter(({ id }) => !this.#outcomes.has(id)).map(plain);
    for (const { finished_at: at } of fresh) this.#sinceMs = Math.max(this.#sinceMs, at);
    /** @type {Set<string>} */
    const triedAgain = new Set();
    const among = (/** @type {string} */ column) =>
      `${column} in (${fresh.map(({ id }) => `'${id}'`).join(", ")})`;
    if (fresh.length > 0) {
      for (const row of await reader.all(`${RUNS} where ${among("r.id")}`))
        this.#runs.set(row.id, plain(row));
      for (const row of (await reader.all(`${ATTEMPTS} where ${among("run")}`)).map(plain)) {
        this.#attempts.set(`${row.run} ${row.fence}`, row);
        triedAgain.add(row.run);
      }
    }
    for (const row of (await reader.all(INSTANCES)).map(plain)) this.#instances.set(row.no, row);
    for (const outcome of fresh) this.#outcomes.set(outcome.id, outcome);
    return fresh.flatMap((outcome) => {
      const run = this.#runs.get(outcome.id);
      return run ? [{ run, outcome, isFirstTry: !triedAgain.has(outcome.id) }] : [];
    });
  }

  /**
   * Returns the tables as if nothing had been removed.
   * @param {Reader} reader
   * @returns {Promise<import("./tables.mjs").Tables>}
   */
  async whole(reader) {
    const tables = await readTables(reader);
    for (const row of tables.runs) this.#runs.set(row.id, row);
    for (const row of tables.outcomes) this.#outcomes.set(row.id, row);
    for (const row of tables.attempts) this.#attempts.set(`${row.run} ${row.fence}`, row);
    for (const row of tables.instances) this.#instances.set(row.no, row);
    return {
      ...tables,
      runs: [...this.#runs.values()],
      outcomes: [...this.#outcomes.values()],
      attempts: [...this.#attempts.values()],
      instances: [...this.#instances.values()],
    };
  }
}
