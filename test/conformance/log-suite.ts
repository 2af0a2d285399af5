// Log lines that are kept with a run: the holder's words alone, in order, each once.

import { expect } from "vitest";
import type { LogLine } from "../../src/store/logs.js";
import { completed, type Held, idsOf, retried, type Scene, type SceneTest } from "./scene.js";

function line({ id, fence }: Held, no: number, changes: Partial<LogLine> = {}): LogLine {
  return {
    id,
    fence,
    no,
    level: "info",
    agoMs: 0,
    message: `line ${no}`,
    fields: null,
    ...changes,
  };
}

function append(scene: Scene, ...lines: LogLine[]) {
  return scene.store.logs.append({ holder: scene.holder, lines });
}

async function messages(scene: Scene, id: string): Promise<string[]> {
  const lines = await scene.store.logs.list({ id, after: null, limit: 100 });
  return lines.map(({ message }) => message);
}

export function logSuite(test: SceneTest): void {
  test("lines are kept with level, fields, attempt and the database's time", async ({ scene }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    const fields = '{"url":"https://example.com","tries":[1,2]}';
    const answer = await append(
      scene,
      line(held, 1, { level: "debug", agoMs: 900 }),
      line(held, 2, { level: "error", message: 'a "quoted", {braced} \\ line\nof two', fields }),
    );
    expect(answer).toEqual([]);
    const common = { fence: held.fence, attempt: 1 };
    expect(await scene.store.logs.list({ id: held.id, after: null, limit: 10 })).toEqual([
      { ...common, no: 1, at: scene.now - 900, level: "debug", message: "line 1", fields: null },
      {
        ...common,
        no: 2,
        at: scene.now,
        level: "error",
        message: 'a "quoted", {braced} \\ line\nof two',
        fields,
      },
    ]);
  });

  test("the kept lines of a grant are counted without repeated ones", async ({ scene }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    const { id, fence } = held;
    const kept = (first: number, last: number) => scene.store.logs.kept({ id, fence, first, last });
    expect(await kept(0, 0)).toEqual({ last: 0, chars: 0, dropped: 0, droppedTo: 0 });
    const fields = '{"dropped":7,"to":12}';
    await append(scene, line(held, 1), line(held, 2), line(held, 3, { fields }));
    expect(await kept(2, 9)).toEqual({ last: 2, chars: 6, dropped: 7, droppedTo: 12 });
    expect(await kept(0, 0)).toMatchObject({ chars: 12 });
  });

  test("one call keeps the lines of many runs", async ({ scene }) => {
    await scene.enqueued(3);
    const held = await scene.claim();
    await append(scene, ...held.flatMap((each) => [line(each, 1), line(each, 2)]));
    for (const { id } of held) expect(await messages(scene, id)).toEqual(["line 1", "line 2"]);
  });

  test("lines are read from where the reader was, over all attempts", async ({ scene }) => {
    await scene.enqueued(1);
    const first = await scene.claimOne();
    await append(scene, line(first, 1), line(first, 2));
    await scene.settle(retried(first, 0));
    const second = await scene.claimOne();
    await append(scene, line(second, 1, { message: "again" }));
    const { id } = first;
    const [one, two] = await scene.store.logs.list({ id, after: null, limit: 2 });
    expect([one?.message, two?.message]).toEqual(["line 1", "line 2"]);
    const after = { fence: first.fence, no: 2 };
    const rest = await scene.store.logs.list({ id, after, limit: 2 });
    expect(rest).toMatchObject([{ attempt: 2, no: 1, message: "again" }]);
    const end = { fence: second.fence, no: 1 };
    expect(await scene.store.logs.list({ id, after: end, limit: 2 })).toEqual([]);
  });

  test("a line that is sent twice is one line, with its last words", async ({ scene }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    await append(scene, line(held, 1), line(held, 2, { message: "3 lines more" }));
    await append(scene, line(held, 1), line(held, 2, { message: "9 lines more" }));
    expect(await messages(scene, held.id)).toEqual(["line 1", "9 lines more"]);
  });

  test("S3: a holder that lost a run adds no line to it, and learns so once", async ({ scene }) => {
    await scene.enqueued(2);
    const [one, two] = (await scene.claim()) as [Held, Held];
    await append(scene, line(one, 1));
    await scene.settle(completed(two));
    expect(await append(scene, line(one, 2), line(two, 1), line(two, 2))).toEqual([
      { id: two.id, fence: two.fence },
    ]);
    expect(await messages(scene, two.id)).toEqual([]);
    await scene.loseAll();
    expect(idsOf(await append(scene, line(one, 3)))).toEqual([one.id]);
    await scene.claimOne({ wantsSuspect: true });
    expect(idsOf(await append(scene, line(one, 4)))).toEqual([one.id]);
    expect(await messages(scene, one.id)).toEqual(["line 1", "line 2"]);
  });

  test("S3: a holder cannot add a line to the run of another", async ({ scene }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    const holder = await scene.announce("second");
    expect(idsOf(await scene.store.logs.append({ holder, lines: [line(held, 1)] }))).toEqual([
      held.id,
    ]);
    expect(await messages(scene, held.id)).toEqual([]);
  });

  test("lines go with their run", async ({ scene }) => {
    await scene.enqueued(2);
    const [one, two] = (await scene.claim()) as [Held, Held];
    await append(scene, line(one, 1), line(two, 1));
    await scene.settle(completed(one), completed(two));
    await scene.store.runs.remove({ id: one.id });
    expect(await messages(scene, one.id)).toEqual([]);
    expect(await messages(scene, two.id)).toEqual(["line 1"]);
    scene.advance(40 * 86_400_000);
    await scene.store.retention.prune({ keepMs: 86_400_000, keepTicksMs: 86_400_000, limit: 100 });
    expect(await messages(scene, two.id)).toEqual([]);
  });

  test("the reply to a dispatched run is kept beside its lines, once for each grant", async ({
    scene,
  }) => {
    await scene.enqueued(1);
    const first = await scene.claimOne();
    const { id } = first;
    const reply = (
      { fence }: Held,
      attempt: number,
      message: string,
      fields: string | null = null,
    ) =>
      scene.store.logs.keepReply({
        id,
        fence,
        attempt,
        level: "warn",
        agoMs: 250,
        message,
        fields,
      });
    await reply(first, 1, "503", '{"status":503}');
    await append(scene, line(first, 1));
    await scene.settle(retried(first, 0));
    const second = await scene.claimOne();
    await append(scene, line(second, 1));
    await scene.settle(completed(second));
    // The remote service called back before it responded; and the write is sent twice.
    await reply(second, 2, "first words");
    await reply(second, 2, "202");
    const common = { no: 0, at: scene.now - 250, level: "warn" };
    expect(await scene.store.logs.replies(id)).toEqual([
      { ...common, fence: first.fence, attempt: 1, message: "503", fields: '{"status":503}' },
      { ...common, fence: second.fence, attempt: 2, message: "202", fields: null },
    ]);
    expect(await messages(scene, id)).toEqual(["line 1", "line 1"]);
  });

  test("of a run that is gone nothing is kept", async ({ scene }) => {
    await scene.enqueued(1);
    const held = await scene.claimOne();
    await scene.settle(completed(held));
    expect(await scene.store.runs.remove({ id: held.id })).toBe("removed");
    const { id, fence } = held;
    const told = { attempt: 1, level: "info", agoMs: 0, message: "200", fields: null } as const;
    await scene.store.logs.keepReply({ id, fence, ...told });
    expect(await scene.store.logs.replies(id)).toEqual([]);
  });
}
