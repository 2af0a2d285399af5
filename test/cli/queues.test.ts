// Queues through the program, and why a run waits.

import { afterAll, beforeAll, expect, test } from "vitest";
import { configText, openTerminal, type Terminal } from "./terminal.js";

let terminal: Terminal;
beforeAll(async () => {
  terminal = openTerminal();
  terminal.write({
    "holdfast.config.mjs": configText('holdfast.job("report", { queue: "slow" });'),
  });
  expect(await terminal.holdfast(["migrate"])).toMatchObject({ code: 0 });
});
afterAll(() => terminal.close());

async function json(...args: string[]) {
  const ended = await terminal.holdfast([...args, "--json"]);
  return { ...ended, document: ended.stdout === "" ? undefined : JSON.parse(ended.stdout) };
}

test("a queue is listed, paused with a note and resumed; a run in it shows why it waits", async () => {
  const { document } = await json("enqueue", "report", "{}");
  expect((await json("queues", "list")).document).toEqual({
    queues: [{ name: "slow", ready: 1, waiting: 0, running: 0, pausedAt: null, pauseNote: null }],
    pausedAll: null,
  });
  const paused = await terminal.holdfast([
    "queues",
    "pause",
    "slow",
    "--note",
    "the relay is down",
  ]);
  expect(paused.stdout).toBe(
    "Queue slow is paused (the relay is down): 1 ready, 0 running go on.\n",
  );
  const shown = await terminal.holdfast(["runs", "show", document.id]);
  expect(shown.stdout).toMatch(/waits +for the queue slow, paused since .* \(the relay is down\)/);
  expect((await json("runs", "show", document.id)).document.waitingFor).toMatchObject({
    reason: "paused_queue",
    queue: "slow",
  });
  expect((await terminal.holdfast(["queues", "list"])).stdout).toMatch(/slow .* the relay is down/);
  expect((await json("queues", "resume", "slow")).document).toMatchObject({ pausedAt: null });
  const waits = await terminal.holdfast(["runs", "show", document.id]);
  expect(waits.stdout).toMatch(/waits +for a worker: no live instance executes this job/);
});

test.for(["queues", "instances", "audit"])(
  "%s by its name alone is its list, in words and as one document",
  async (group) => {
    const [short, long] = await Promise.all([
      terminal.holdfast([group]),
      terminal.holdfast([group, "list"]),
    ]);
    expect(short).toMatchObject({ code: 0, stderr: "" });
    expect(short.stdout).toBe(long.stdout);
    expect((await json(group)).document).toEqual((await json(group, "list")).document);
  },
);
