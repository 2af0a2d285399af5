// Texts round trip byte for byte: every content of a caller's JSON, up to the allowed size.

import { expect } from "vitest";
import { INPUT_BYTES_MAX, RESULT_BYTES_MAX } from "../../src/shared/json.js";
import { completed, failed, type Held, idsOf, retried, type SceneTest } from "./scene.js";

/** Valid JSON texts that have broken somebody's database before. */
const ODD: Readonly<Record<string, string>> = {
  "a NUL": JSON.stringify("a\u0000b"),
  "a lone surrogate": JSON.stringify("\ud800 and \udfff"),
  "escaped surrogates": String.raw`"\ud83d\ude00 \uD83D"`,
  "quotes of all kinds": JSON.stringify(`' " \` '' "" \\ \\' $1 $$ {now} {run} :now :id ? ?? %s`),
  "what looks like SQL": JSON.stringify("'); drop table run; --"),
  "white space that JSON allows": ' { "a" : 1 ,\n\t"b": [ ] } ',
  "numbers that doubles cannot hold":
    "[1e400,-0,0.1000000000000000055511151231257827,9007199254740993]",
  "members in an order, twice": '{"b":1,"a":2,"b":3}',
  "all of Unicode's corners": JSON.stringify(
    "\u2028\u2029\ufeff\ufffe\uffff é e\u0301 ﷽ 😀 \u202e",
  ),
  "control characters": JSON.stringify(
    Array.from({ length: 32 }, (_, at) => String.fromCharCode(at)).join(""),
  ),
  "a deep nest": `${"[".repeat(90)}${"]".repeat(90)}`,
  null: "null",
  "an empty text": '""',
};

export function textSuite(test: SceneTest): void {
  test("odd inputs come back byte for byte, from the claim and from the record", async ({
    scene,
  }) => {
    const runs = Object.values(ODD).map((input) => scene.run({ input }));
    await scene.enqueue(...runs);
    const claimed = new Map(
      (await scene.claims({ limit: 100 })).flatMap(({ runs: each }) =>
        each.map(({ id, input }) => [id, input]),
      ),
    );
    for (const { id, input } of runs) {
      expect(claimed.get(id)).toBe(input);
      expect((await scene.record(id)).input).toBe(input);
    }
  });

  test("odd results and errors come back byte for byte", async ({ scene }) => {
    const texts = Object.values(ODD);
    await scene.enqueued(texts.length * 3);
    const held = await scene.claim({ limit: 100 });
    const third = texts.length;
    const parts = [0, 1, 2].map((at) => held.slice(at * third, (at + 1) * third)) as [
      Held[],
      Held[],
      Held[],
    ];
    const stale = await scene.settle(
      ...parts[0].map((each, at) => completed(each, texts[at])),
      ...parts[1].map((each, at) => failed(each, texts[at])),
      ...parts[2].map((each, at) => retried(each, 1_000, texts[at])),
    );
    expect(stale).toEqual([]);
    for (const [at, text] of texts.entries()) {
      expect((await scene.record(parts[0][at]?.id as string)).result).toBe(text);
      expect((await scene.record(parts[1][at]?.id as string)).error).toBe(text);
      const [attempt] = await scene.store.runs.attempts(parts[2][at]?.id as string);
      expect(attempt?.error).toBe(text);
    }
  });

  test("an input of 256 KiB and a result of 1 MiB come back whole", async ({ scene }) => {
    const input = JSON.stringify("é".repeat(INPUT_BYTES_MAX / 2 - 1));
    const result = JSON.stringify("x😀".repeat(RESULT_BYTES_MAX / 5 - 1));
    const [id] = (await scene.enqueued(1, { input })) as [string];
    const held = await scene.claimOne();
    expect(held.claim.runs[0]?.input === input).toBe(true);
    await scene.settle(completed(held, result));
    const record = await scene.record(id);
    expect(record.input === input).toBe(true);
    expect(record.result === result).toBe(true);
  });

  test("odd names of jobs, queues, tags and keys stay distinct and are returned unchanged", async ({
    scene,
  }) => {
    const names = [
      "a'b",
      'a"b',
      "a\\b",
      "a{now}b",
      "a:now",
      "a$1",
      "ä",
      "日本",
      "😀",
      "A",
      "a",
      "a,b",
      "{a}",
    ];
    const runs = names.map((name) =>
      scene.run({ job: name, queue: name, tags: [name], key: { key: name, inputHash: name } }),
    );
    await scene.enqueue(...runs);
    for (const [at, name] of names.entries()) {
      const { id } = runs[at] as (typeof runs)[number];
      expect(await scene.record(id)).toMatchObject({
        job: name,
        queue: name,
        tags: [name],
        key: name,
      });
      expect(idsOf(await scene.store.runs.list({ tag: name, limit: 10 }))).toEqual([id]);
      expect(idsOf(await scene.claim({ jobs: [name], queues: [name] }))).toEqual([id]);
    }
  });
}
