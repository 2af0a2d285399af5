// Transactions that a user's work shares with the end of its run, or with an item: both or neither.

import { expect } from "vitest";
import { TxMustBeSyncError } from "../../src/shared/errors.js";
import type { Settlement } from "../../src/store/claims.js";
import type { CommitItemParams, CommitParams, CommitStepParams } from "../../src/store/commits.js";
import type { ItemWrite } from "../../src/store/items.js";
import type { PostgresTx } from "../../src/store/postgres/commits.js";
import type { SqliteTx } from "../../src/store/sqlite/connection/handle.js";
import { doneItem } from "./item-suite.js";
import { completed, failed, type Held, handedBack, type Scene, type SceneTest } from "./scene.js";

/** The user's table: one row for each effect. */
class Ledger {
  readonly #scene: Scene;
  readonly #name = `effects_${crypto.randomUUID().replaceAll("-", "_")}`;

  constructor(scene: Scene) {
    this.#scene = scene;
  }

  get isSync(): boolean {
    return this.#scene.store.engine === "sqlite";
  }

  static async open(scene: Scene): Promise<Ledger> {
    const ledger = new Ledger(scene);
    const held = await ledger.#stranger();
    await scene.store.commits.run(
      ledger.commit(held, completed(held), `create table ${ledger.#name} (what text)`),
    );
    return ledger;
  }

  /** A run of its own: a transaction is reached through one alone. */
  async #stranger(): Promise<Held> {
    await this.#scene.enqueued(1, { job: "ledger" });
    return this.#scene.claimOne({ jobs: ["ledger"] });
  }

  /** One effect, given as a value. */
  get insert(): string {
    return `insert into ${this.#name} values ($1)`;
  }

  effect(what: string): string {
    return `insert into ${this.#name} values ('${what}')`;
  }

  /** Says this in the transaction, then answers with that. */
  #work<Made>(text: string, made: Made): (tx: unknown) => Made | Promise<Made> {
    type Tx = { exec(text: string): void; query(text: string): Promise<unknown> };
    return (tx) => {
      if (!this.isSync) return (tx as Tx).query(text).then(() => made);
      (tx as Tx).exec(text);
      return made;
    };
  }

  commit(held: Held, settlement: Settlement, text = this.effect(held.id)): CommitParams {
    const { id, fence } = held;
    const { holder } = this.#scene;
    const work = this.#work(text, settlement);
    return { id, fence, holder, random: 0, on: null, timeoutMs: 10_000, work };
  }

  item(
    held: Held,
    item: ItemWrite,
    text = this.effect(`${held.id} ${item.key}`),
  ): CommitItemParams {
    const { id, fence } = held;
    return { id, fence, on: null, timeoutMs: 10_000, work: this.#work(text, item) };
  }

  step(held: Held, name: string): CommitStepParams {
    const { id, fence } = held;
    const work = this.#work(this.effect(`${id} ${name}`), { name, value: "1", tries: 1, ranMs: 5 });
    return { id, fence, generation: 0, on: null, timeoutMs: 10_000, work };
  }

  async effects(): Promise<string[]> {
    const held = await this.#stranger();
    let rows: readonly unknown[] = [];
    const text = `select what from ${this.#name} order by what`;
    await this.#scene.store.commits.run({
      ...this.commit(held, completed(held)),
      work: (tx) => {
        if (this.isSync) {
          const { prepare } = tx as { prepare(text: string): { all(): unknown[] } };
          rows = prepare.call(tx, text).all();
          return completed(held);
        }
        const { query } = tx as { query(text: string): Promise<{ rows: unknown[] }> };
        return query(text).then((answer) => {
          rows = answer.rows;
          return completed(held);
        });
      },
    });
    return rows.map((row) => (row as { what: string }).what);
  }
}

export function commitSuite(test: SceneTest): void {
  test("the work and the end of its run are committed together", async ({ scene }) => {
    const ledger = await Ledger.open(scene);
    await scene.enqueued(1);
    const held = await scene.claimOne();
    scene.advance(100);
    expect(await scene.store.commits.run(ledger.commit(held, completed(held, '"paid"')))).toBe(
      "committed",
    );
    expect(await ledger.effects()).toEqual([held.id]);
    expect(await scene.record(held.id)).toMatchObject({
      status: "completed",
      result: '"paid"',
      fence: held.fence,
      attempt: 1,
      finishedAt: scene.now,
    });
    expect(await scene.store.runs.attempts(held.id)).toHaveLength(1);
    expect(await scene.store.leases.state(held)).toBe("completed");
  });

  test("a commit under an old fence changes nothing, neither ours nor the user's (S3)", async ({
    scene,
  }) => {
    const ledger = await Ledger.open(scene);
    await scene.enqueued(1);
    const lost = await scene.claimOne();
    await scene.settle(handedBack(lost));
    const held = await scene.claimOne();
    expect(await scene.store.commits.run(ledger.commit(lost, completed(lost)))).toBe("stale");
    expect(await ledger.effects()).toEqual([]);
    expect(await scene.status(held.id)).toBe("running");
    expect(await scene.store.leases.state(lost)).toBe("gone");
    expect(await scene.store.leases.state(held)).toBe("held");
    expect(await scene.store.commits.run(ledger.commit(held, completed(held)))).toBe("committed");
    expect(await ledger.effects()).toEqual([held.id]);
  });

  test("an error of the work is thrown, and everything is rolled back", async ({ scene }) => {
    const ledger = await Ledger.open(scene);
    await scene.enqueued(1);
    const held = await scene.claimOne();
    const thrown = new Error("The account is closed.");
    const { work, ...params } = ledger.commit(held, completed(held));
    const failing = (tx: unknown) => {
      const made = work(tx);
      if (!(made instanceof Promise)) throw thrown;
      return made.then((): never => {
        throw thrown;
      });
    };
    await expect(scene.store.commits.run({ ...params, work: failing })).rejects.toBe(thrown);
    expect(await scene.status(held.id)).toBe("running");
    expect(await scene.store.leases.state(held)).toBe("held");
    await expect(
      scene.store.commits.run(
        ledger.commit(held, completed(held), "insert into no_such_table values (1)"),
      ),
    ).rejects.toThrow(/no_such_table/);
    expect(await ledger.effects()).toEqual([]);
    // The run is still held, so that it may be tried again.
    expect(await scene.store.commits.run(ledger.commit(held, completed(held)))).toBe("committed");
    expect(await ledger.effects()).toEqual([held.id]);
  });

  test("a commit settles its own run alone; its siblings stay held under the same fence", async ({
    scene,
  }) => {
    const ledger = await Ledger.open(scene);
    await scene.enqueued(3);
    const [first, ...rest] = await scene.claim();
    if (!first) throw new Error("Three runs were to be claimed.");
    expect(await scene.store.commits.run(ledger.commit(first, completed(first)))).toBe("committed");
    const { held } = await scene.store.leases.renew({
      holder: scene.holder,
      fences: [first.fence],
    });
    expect([...(held[0]?.ids ?? [])].sort()).toEqual(rest.map(({ id }) => id).sort());
    expect(await scene.settle(...rest.map((each) => completed(each)))).toEqual([]);
  });

  test("a result that is committed wins over a cancel that was asked for", async ({ scene }) => {
    const ledger = await Ledger.open(scene);
    await scene.enqueued(1);
    const held = await scene.claimOne();
    expect(await scene.store.runs.cancel({ id: held.id, random: 0 })).toBe("requested");
    expect(await scene.store.commits.run(ledger.commit(held, completed(held)))).toBe("committed");
    expect(await scene.status(held.id)).toBe("completed");
  });

  test("of a commit and a settlement of the same grant one takes effect", async ({ scene }) => {
    const ledger = await Ledger.open(scene);
    await scene.enqueued(1);
    const held = await scene.claimOne();
    await scene.settle(failed(held));
    expect(await scene.store.commits.run(ledger.commit(held, completed(held)))).toBe("stale");
    expect(await ledger.effects()).toEqual([]);
    expect(await scene.status(held.id)).toBe("failed");
  });

  test("an item and its work are committed together, or neither is", async ({ scene }) => {
    const ledger = await Ledger.open(scene);
    await scene.enqueued(1);
    const held = await scene.claimOne();
    const { store } = scene;
    expect(await store.commits.item(ledger.item(held, doneItem(held, "a", 1)))).toBe("stored");
    // The same again: another effect would be one too many, so what is stored is what counts.
    expect(await store.commits.item(ledger.item(held, doneItem(held, "a", 2)))).toEqual({
      kept: { outcome: "ok", value: "1" },
    });
    expect(await ledger.effects()).toEqual([`${held.id} a`]);
    await scene.settle(handedBack(held));
    expect(await store.commits.item(ledger.item(held, doneItem(held, "b", 1)))).toBe("stale");
    expect(await ledger.effects()).toEqual([`${held.id} a`]);
    expect((await scene.record(held.id)).items).toEqual({ ok: 1 });
  });

  test("a step and its work are committed together, once, and neither is under an old fence", async ({
    scene,
  }) => {
    const ledger = await Ledger.open(scene);
    const { commits, steps } = scene.store;
    await scene.enqueued(1);
    const old = await scene.claimOne();
    const { id } = old;
    expect(await commits.step(ledger.step(old, "a"))).toBe(1);
    expect(await commits.step(ledger.step(old, "a"))).toBe("stale");
    await scene.loseAll();
    const held = await scene.claimOne({ wantsSuspect: true });
    expect(await commits.step(ledger.step(old, "b"))).toBe("stale");
    expect(await commits.step(ledger.step(held, "c"))).toBe(2);
    const { steps: stored } = await steps.list({ id, after: 0 });
    expect(stored.map(({ name, fence }) => [name, fence])).toEqual([
      ["a", old.fence],
      ["c", held.fence],
    ]);
    expect(await ledger.effects()).toEqual([`${id} a`, `${id} c`]);
  });

  test("work that returns a promise on SQLite is rolled back with an error that says so", async ({
    scene,
  }) => {
    const ledger = await Ledger.open(scene);
    if (!ledger.isSync) return;
    await scene.enqueued(1);
    const held = await scene.claimOne();
    const { work, ...params } = ledger.commit(held, completed(held));
    const answer = scene.store.commits.run({
      ...params,
      work: (tx) => Promise.resolve(work(tx)),
    });
    await expect(answer).rejects.toThrow(TxMustBeSyncError);
    expect(await ledger.effects()).toEqual([]);
    expect(await scene.status(held.id)).toBe("running");
  });

  test("work that does not await its statements has one form on both engines, and all of them count", async ({
    scene,
  }) => {
    const ledger = await Ledger.open(scene);
    const { store } = scene;
    await scene.enqueued(2);
    const held = await scene.claimOne();
    const write = (text: string, made: Settlement) => (tx: unknown) => {
      const { query } = tx as PostgresTx;
      query(ledger.insert, ["first"]);
      query(text, text.includes("$1") ? ["second"] : []);
      return made;
    };
    const params = ledger.commit(held, completed(held));
    expect(
      await store.commits.run({ ...params, work: write(ledger.insert, completed(held)) }),
    ).toBe("committed");
    expect(await ledger.effects()).toEqual(["first", "second"]);

    const other = await scene.claimOne();
    const ask = (text: string) =>
      store.commits.run({
        ...ledger.commit(other, completed(other)),
        work: write(text, completed(other)),
      });
    await expect(ask("insert into no_such_table values ($1)")).rejects.toThrow(/no_such_table/);
    await expect(ask("commit")).rejects.toMatchObject({ code: "TX_ENDED" });
    expect(await scene.status(other.id)).toBe("running");
    expect(await ledger.effects()).toEqual(["first", "second"]);
  });

  test("query returns rows and counts, with values by their numbers", async ({ scene }) => {
    const ledger = await Ledger.open(scene);
    await scene.enqueued(1);
    const held = await scene.claimOne();
    const at = new Date(Date.UTC(2026, 0, 15));
    const seen: unknown[] = [];
    const statements: readonly [string, (readonly unknown[])?][] = [
      [`${ledger.insert} returning what`, ["a"]],
      [ledger.insert, [at.toISOString()]],
      [
        "select cast($2 as text) as two, cast($1 as text) as one, cast($2 as text) as again, '$1' as \"$2\" -- $3",
        ["one", "two"],
      ],
      ["select cast($1 as text) as absent", [undefined]],
      ["select 1 as one"],
    ];
    const note = ({ rows, rowCount }: Awaited<ReturnType<PostgresTx["query"]>>) =>
      seen.push(
        rows.map((row) => ({ ...row })),
        rowCount,
      );
    const work = (tx: unknown): Settlement | Promise<Settlement> => {
      const { query } = tx as PostgresTx & SqliteTx;
      if (ledger.isSync) {
        for (const [text, values] of statements) note((query as SqliteTx["query"])(text, values));
        return completed(held);
      }
      return (async () => {
        for (const [text, values] of statements) note(await query(text, values));
        return completed(held);
      })();
    };
    await scene.store.commits.run({ ...ledger.commit(held, completed(held)), work });
    expect(seen).toEqual([
      ...[[{ what: "a" }], 1],
      ...[[], 1],
      ...[[{ two: "two", one: "one", again: "two", $2: "$1" }], 1],
      ...[[{ absent: null }], 1],
      ...[[{ one: 1 }], 1],
    ]);
  });

  test("a work that ends the transaction itself does not complete its run", async ({ scene }) => {
    const ledger = await Ledger.open(scene);
    await scene.enqueued(1);
    const held = await scene.claimOne();
    const answer = scene.store.commits.run(ledger.commit(held, completed(held), "rollback"));
    await expect(answer).rejects.toMatchObject({ code: "TX_ENDED" });
    expect(await scene.status(held.id)).toBe("running");
    expect(await ledger.effects()).toEqual([]);
  });
}
