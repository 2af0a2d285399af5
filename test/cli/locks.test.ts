// Named locks through the program.

import { afterAll, beforeAll, expect, test } from "vitest";
import { Holdfast } from "../../src/index.js";
import { configText, openTerminal, type Terminal } from "./terminal.js";

let terminal: Terminal;
let holdfast: Holdfast;
beforeAll(() => {
  terminal = openTerminal();
  terminal.write({ "holdfast.config.mjs": configText("") });
  const logger = { debug() {}, info() {}, warn() {}, error() {} };
  holdfast = new Holdfast({ database: `sqlite:${terminal.folder}/app.db`, logger });
});
afterAll(async () => {
  await holdfast.stop();
  await terminal.close();
});

async function json(...args: string[]) {
  const ended = await terminal.holdfast([...args, "--json"]);
  return { ...ended, document: ended.stdout === "" ? undefined : JSON.parse(ended.stdout) };
}

test("list, stats and history show locks and holders; release takes a lock with a note, and reports a free one", async () => {
  await holdfast.lock("export", { lease: "1m" }, () => "done");
  const stuck = holdfast.lock("import", { lease: "1h" }, async () => {
    const list = await terminal.holdfast(["locks", "list"]);
    expect(list).toMatchObject({ code: 0, stderr: "" });
    expect(list.stdout).toContain("import");
    expect(list.stdout).toContain(holdfast.instanceId);
    const { document } = await json("locks", "list");
    expect(document).toMatchObject({
      locks: [{ name: "import", fence: 2, holder: holdfast.instanceId, waiting: 0 }],
      nextCursor: null,
    });
    expect((await json("locks", "stats")).document).toEqual({
      acquired: 1,
      released: 1,
      expired: 0,
      revoked: 0,
      waiting: 0,
    });
    const taken = await terminal.holdfast(["locks", "release", "import", "--note", "stuck"]);
    expect(taken.stdout).toBe(`Lock "import" was taken from ${holdfast.instanceId} (fence 2).\n`);
    expect(taken.code).toBe(0);
  });
  await expect(stuck).rejects.toThrow("no longer held under fence 2");
  const again = await json("locks", "release", "import");
  expect(again).toMatchObject({ code: 1, document: { name: "import", released: false } });
  expect((await terminal.holdfast(["locks", "list"])).stdout).toBe("No lock is held.\n");
  const stats = await terminal.holdfast(["locks", "stats"]);
  expect(stats.stdout).toContain("1 taken by an operator");
  const history = await json("locks", "history", "import");
  expect(history.document).toMatchObject({ grants: [{ state: "revoked", note: "stuck" }] });
  const page = await terminal.holdfast(["locks", "history", "--limit", "1"]);
  expect(page.stdout).toMatch(/revoked[\s\S]*More: add --cursor '2'/);
});

test("a command that only looks makes no database", async () => {
  const { code, stderr } = await terminal.holdfast([
    "locks",
    "stats",
    "--database",
    "sqlite:none.db",
  ]);
  expect(code).toBe(3);
  expect(stderr).toContain("does not exist");
});

test("a wrong call is refused with an example", async () => {
  expect(await terminal.holdfast(["locks", "release"])).toMatchObject({ code: 2 });
  expect(await terminal.holdfast(["locks", "list", "--limit", "0"])).toMatchObject({ code: 2 });
});

test("with an address alone, a database without locks says where those in Redis or etcd are shown", async () => {
  await holdfast.queues.list();
  const address = `sqlite:${terminal.folder}/app.db`;
  const list = await terminal.holdfast(["locks", "list", "--database", address]);
  expect(list).toMatchObject({ code: 0, stdout: expect.stringContaining("No lock is held.") });
  expect(list.stdout).toContain("Locks in Redis or etcd are shown with --config <file>");
});
