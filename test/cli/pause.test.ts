// The pause of everything through the program.

import { afterAll, beforeAll, expect, test } from "vitest";
import { configText, openTerminal, type Terminal } from "./terminal.js";

let terminal: Terminal;
beforeAll(async () => {
  terminal = openTerminal();
  const job = 'holdfast.job("report", { run: () => "done" });';
  terminal.write({ "holdfast.config.mjs": configText(job) });
  expect(await terminal.holdfast(["migrate"])).toMatchObject({ code: 0 });
});
afterAll(() => terminal.close());

async function json(...args: string[]) {
  const ended = await terminal.holdfast([...args, "--json"]);
  return { ...ended, document: ended.stdout === "" ? undefined : JSON.parse(ended.stdout) };
}

test("everything is paused with a note, says so wherever it matters, and is resumed", async () => {
  await json("schedules", "create", "nightly", "--job", "report", "--cron", "0 2 * * *");
  const run = (await json("enqueue", "report", "{}")).document;
  const asked = ["pause", "--all", "--note", "moving house", "--by", "ada"];
  const paused = await terminal.holdfast(asked);
  expect(paused).toMatchObject({ code: 0, stderr: "" });
  expect(paused.stdout).toMatch(/^Everything is paused since .* by ada \(moving house\); runs/);
  for (const page of [
    ["schedules", "list"],
    ["schedules", "show", "nightly"],
    ["schedules", "preview", "nightly"],
    ["queues", "list"],
  ]) {
    const { stdout } = await terminal.holdfast(page);
    expect(stdout).toMatch(/Everything is paused since .* by ada \(moving house\): nothing fires/);
  }
  expect((await json("schedules", "list")).document.pausedAll).toMatchObject({ by: "ada" });
  expect((await json("schedules", "show", "nightly")).document.pausedAll).toMatchObject({
    note: "moving house",
  });
  const shown = await terminal.holdfast(["runs", "show", run.id]);
  expect(shown.stdout).toMatch(
    /waits +for everything to be resumed, paused since .* \(moving house\)/,
  );
  expect((await json("tick")).document).toMatchObject({ fired: [], executed: 0 });
  const lifted = await terminal.holdfast(["resume", "--all"]);
  expect(lifted.stdout).toMatch(/^Everything is resumed; it was paused since .* by ada/);
  expect((await json("resume", "--all")).document).toEqual({ lifted: null });
  expect((await json("tick")).document).toMatchObject({ executed: 1 });
});

test("without --all nothing is done, and the message suggests the right call", async () => {
  for (const command of ["pause", "resume"]) {
    const { code, stderr } = await terminal.holdfast([command]);
    expect(code).toBe(2);
    expect(stderr).toContain(`add --all to confirm. For a single one: schedules ${command} <name>`);
  }
  expect((await json("queues", "list")).document.pausedAll).toBeNull();
});
