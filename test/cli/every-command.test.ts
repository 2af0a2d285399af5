// Runs every command through the real program: its output as text and as a document, and a message with exit code 2 for
// a wrong call. The last test fails if the table is incomplete.

import { afterAll, beforeAll, expect, test } from "vitest";
import { EXERCISES, type Exercise } from "./every-command-table.js";
import { type Ended, openTerminal, type Terminal } from "./terminal.js";

const CONFIG = `import { Holdfast, PermanentError } from "holdfast";
const holdfast = new Holdfast({ database: "sqlite:app.db", poll: "1h", alerts: { failureRate: { atLeast: 1 }, to: [() => undefined] } });
const echo = holdfast.job("echo", { run: (input) => input });
holdfast.job("refuse", { run() { throw new PermanentError("never"); } });
holdfast.job("fan", { async run(input, ctx) {
  ctx.log.info({}, "counting");
  await ctx.item("apples", () => 3);
  await ctx.enqueueBatch([{ job: echo, input: { child: true } }]);
} });
// With a bound, or the command after the deletion of a schedule warns when it declares that schedule again.
const missed = { run: "latest", within: "1h" };
const at = (name) => holdfast.schedule(name, echo, { cron: "0 2 * * *", missed });
at("nightly");
for (const name of ["changed", "doomed", "paused", "resting", "triggered", "tested"])
  for (const number of name === "changed" ? [""] : ["-1", "-2"]) at(name + number);
for (const name of ["filled-1", "filled-2"]) holdfast.schedule(name, echo, { cron: "0 * * * *" });
holdfast.schedule("watched", { monitor: true, cron: "0 3 1 1 *" });
export default holdfast;
`;
/** A database of its own: nothing of the others may be executed by it. */
const OTHER = CONFIG.replace("app.db", "other.db").replace(/at\("nightly"\).*(?=export)/s, "");

let terminal: Terminal;
const ids = new Map<string, string>();

beforeAll(async () => {
  terminal = openTerminal();
  terminal.write({ "holdfast.config.mjs": CONFIG, "other.config.mjs": OTHER });
  const enqueue = async (name: string, ...args: string[]) => {
    const { stdout } = await terminal.holdfast(["enqueue", ...args, "--json"]);
    ids.set(name, JSON.parse(stdout).id);
  };
  await enqueue("fan", "fan", "{}");
  await enqueue("failed-1", "refuse", "{}");
  await enqueue("failed-2", "refuse", "{}");
  expect(await terminal.holdfast(["tick", "--limit", "20"])).toMatchObject({ code: 0 });
  const { stdout } = await terminal.holdfast(["alerts", "list", "--json"]);
  ids.set("alert", JSON.parse(stdout).alerts[0].id);
  const { stdout: found } = await terminal.holdfast(["instances", "list", "--json"]);
  ids.set("instance", JSON.parse(found).instances[0].id);
  await enqueue("later-1", "echo", "{}", "--delay", "1h");
  await enqueue("later-2", "echo", "{}", "--delay", "1h");
  for (const args of [
    ["migrate", "--config", "other.config.mjs"],
    // Nobody changes this one while another call counts what is in it.
    ["migrate", "--database", "sqlite:still.db"],
    ["calendars", "set", "workdays", "--days", "mon-fri", "--database", "sqlite:still.db"],
    ["calendars", "set", "workdays", "--days", "mon-fri"],
    ["calendars", "set", "old-1", "--days", "mon"],
    ["calendars", "set", "old-2", "--days", "mon"],
    ["schedules", "pause", "resting-1"],
    ["schedules", "pause", "resting-2"],
    ["queues", "pause", "stopped-1"],
    ["queues", "pause", "stopped-2"],
    ["keys", "create", "old-key-1", "--scope", "read"],
    ["keys", "create", "old-key-2", "--scope", "read"],
  ])
    expect(await terminal.holdfast(args)).toMatchObject({ code: 0 });
}, 120_000);
afterAll(() => terminal.close());

const entries = Object.entries(EXERCISES);

test.concurrent.for(entries)("%s answers in words", async ([, exercise]) => {
  const { code, stdout } = await call(exercise, exercise.args);
  expect({ code }).toEqual({ code: exercise.code ?? 0 });
  expect(stdout).toMatch(new RegExp(withIds(exercise.says.source), exercise.says.flags));
});

test.concurrent.for(entries)("%s answers with one document", async ([, exercise]) => {
  const args = [...(exercise.json ?? exercise.args)];
  // The arguments after `--` belong to another program.
  const at = args.includes("--") ? args.indexOf("--") : args.length;
  args.splice(at, 0, "--json");
  const { code, stdout, stderr } = await call(exercise, args);
  expect({ code }).toEqual({ code: exercise.code ?? 0 });
  if (!exercise.until) expect(stderr).toBe("");
  expect(stdout.trim().split("\n")).toHaveLength(1);
  expect(JSON.parse(stdout)).toMatchObject(withIdsIn(exercise.answers));
});

test.concurrent.for(entries)("%s reports a wrong call", async ([, { mistake }]) => {
  const [args, message] = mistake;
  const { code, stdout, stderr } = await terminal.holdfast(args.map(withIds));
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toMatch(message);
  expect(stderr).not.toMatch(/\n\s+at /);
});

test("the table has every command", async () => {
  const commandsOf = async (args: readonly string[]) => {
    const { stdout } = await terminal.holdfast([...args, "--help"]);
    const [, list = ""] = /Commands:\n([\s\S]*?)\n\n/.exec(stdout) ?? [];
    return [...list.matchAll(/^ {2}([a-z]+)/gm)].map(([, name = ""]) => name);
  };
  const leaves = await Promise.all(
    (await commandsOf([])).map(async (name) => {
      const below = await commandsOf([name]);
      return below.length === 0 ? [name] : below.map((each) => `${name} ${each}`);
    }),
  );
  expect(Object.keys(EXERCISES).sort()).toEqual(leaves.flat().sort());
});

async function call({ until }: Exercise, args: readonly string[]): Promise<Ended> {
  const session = terminal.begin(args.map(withIds));
  if (until) {
    await session.line(until);
    session.child.kill("SIGTERM");
  }
  return session.ended;
}

function withIds(text: string): string {
  return text.replace(/<([a-z]+(?:-\d)?)>/g, (whole, name: string) => ids.get(name) ?? whole);
}

function withIdsIn(answers: object): object {
  return Object.fromEntries(
    Object.entries(answers).map(([name, value]) => [
      name,
      typeof value === "string" ? withIds(value) : value,
    ]),
  );
}
