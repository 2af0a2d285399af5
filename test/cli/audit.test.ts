// Tests the audit trail and a quiet instance through the program.

import { afterAll, beforeAll, expect, test } from "vitest";
import { configText, openTerminal, type Terminal } from "./terminal.js";

let terminal: Terminal;
beforeAll(async () => {
  terminal = openTerminal();
  terminal.write({
    "holdfast.config.mjs": configText('holdfast.job("report", { run: () => 1 });'),
  });
  expect(await terminal.holdfast(["migrate"])).toMatchObject({ code: 0 });
});
afterAll(() => terminal.close());

async function json(...args: string[]) {
  const ended = await terminal.holdfast([...args, "--json"]);
  return { ...ended, document: ended.stdout === "" ? undefined : JSON.parse(ended.stdout) };
}

test("changes are listed with who made them, filtered, and one instance is made quiet", async () => {
  expect((await terminal.holdfast(["audit", "list"])).stdout).toBe("No changes.\n");
  await json("queues", "pause", "mail", "--note", "relay");
  await json("tick");
  const { instances } = (await json("instances", "list")).document;
  const [{ id }] = instances;
  const quieted = await terminal.holdfast(["instances", "quiet", id, "--note", "its memory"]);
  expect(quieted.stdout).toMatch(/^Instance .* becomes quiet with its next poll/);
  expect((await terminal.holdfast(["instances", "list"])).stdout).toMatch(/its memory/);
  expect((await json("instances", "wake", id)).document).toEqual({ id, quiet: false });
  const { entries } = (await json("audit", "list")).document;
  expect(entries).toMatchObject([
    { verb: "wake", noun: "instance", via: "cli", who: expect.stringMatching(/.+@.+/) },
    { verb: "quiet", noun: "instance", note: "its memory" },
    { verb: "pause", noun: "queue", name: "mail", note: "relay" },
  ]);
  const text = await terminal.holdfast(["audit", "list", "--noun", "queue", "--since", "1h"]);
  expect(text.stdout).toMatch(/pause queue +mail +\(relay\)/);
  const missing = await terminal.holdfast(["instances", "quiet", "nobody"]);
  expect(missing).toMatchObject({ code: 1 });
  expect(missing.stderr).toContain("There is no instance");
  expect(await terminal.holdfast(["audit", "list", "--noun", "queu"])).toMatchObject({ code: 2 });
});
