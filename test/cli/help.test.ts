// Every help page, as users see it. A change here is a change of the command line's contract.

import { afterAll, beforeAll, expect, test } from "vitest";
import { openTerminal, type Terminal } from "./terminal.js";

let terminal: Terminal;
beforeAll(() => {
  terminal = openTerminal();
});
afterAll(() => terminal.close());

const PAGES = [
  "",
  "init",
  "dev",
  "start",
  "stats",
  "tick",
  "next",
  "migrate",
  "move",
  "schedules",
  "schedules list",
  "schedules show",
  "schedules create",
  "schedules update",
  "schedules delete",
  "schedules pause",
  "schedules resume",
  "schedules trigger",
  "schedules test",
  "schedules ping",
  "schedules preview",
  "schedules explain",
  "schedules ticks",
  "schedules backfill",
  "schedules versions",
  "schedules plan",
  "schedules apply",
  "calendars",
  "calendars list",
  "calendars show",
  "calendars set",
  "calendars delete",
  "keys",
  "keys create",
  "keys list",
  "keys revoke",
  "queues",
  "queues list",
  "queues pause",
  "queues resume",
  "audit",
  "audit list",
  "instances",
  "instances list",
  "instances quiet",
  "instances wake",
  "pause",
  "resume",
  "runs",
  "runs children",
  "runs items",
  "runs list",
  "runs show",
  "runs logs",
  "runs cancel",
  "runs retry",
  "enqueue",
  "signal",
  "check",
  "repair",
  "recover",
  "health",
  "prune",
  "exec",
  "locks",
  "locks list",
  "locks stats",
  "locks history",
  "locks release",
  "alerts",
  "alerts list",
  "alerts show",
  "alerts mute",
  "alerts acknowledge",
  "alerts resolve",
  "alerts test",
  "cleanup",
  "top",
  "simulate",
];

test.for(PAGES)("holdfast %s --help", async (page) => {
  const { code, stdout, stderr } = await terminal.holdfast([
    ...page.split(" ").filter((word) => word !== ""),
    "--help",
  ]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toMatch(/Example/);
  const [, examples = ""] = /^Examples?:\n([\s\S]*)$/m.exec(stdout) ?? [];
  const commands = new Set(PAGES.map((each) => each.split(" ")[0]));
  for (const line of examples.trim().split("\n")) {
    const called = [...line.matchAll(/\bholdfast (\S+)/g)].map(([, name]) => name);
    expect(called).not.toEqual([]);
    for (const name of called) expect(commands).toContain(name);
  }
  expect(stdout).toMatchSnapshot();
});

test("the list of pages is complete", async () => {
  const commandsOf = async (args: string[]) => {
    const { stdout } = await terminal.holdfast([...args, "--help"]);
    const [, list = ""] = /Commands:\n([\s\S]*?)\n\n/.exec(stdout) ?? [];
    return [...list.matchAll(/^ {2}([a-z]+)/gm)].map(([, name = ""]) => [...args, name].join(" "));
  };
  const top = await commandsOf([]);
  const below = await Promise.all(top.map((name) => commandsOf([name])));
  expect(["", ...top, ...below.flat()].sort()).toEqual([...PAGES].sort());
});

test("the version is the package's", async () => {
  const { code, stdout } = await terminal.holdfast(["--version"]);
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) });
});
