// Tests commands on schedules that fire while an instance runs, with trigger and backfill.

import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../support/until.js";
import { configText, openTerminal, type Session, steady, type Terminal } from "./terminal.js";

const JOBS = `
holdfast.job("echo", { run: (input) => ({ echoed: input }) });
holdfast.job("refuse", { run: () => { throw new PermanentError("no such market", { code: "NO_MARKET" }); } });
holdfast.job("endless", { run: (input, ctx) => pause(600_000, null, { signal: ctx.signal }) });
holdfast.job("elsewhere", {});
`;

let terminal: Terminal;
let instance: Session;
const place = ["--database", "sqlite:app.db"];

beforeAll(async () => {
  terminal = openTerminal();
  terminal.write({ "jobs/holdfast.config.mjs": configText(JOBS, "{}") });
  instance = terminal.begin(["start", "jobs/holdfast.config.mjs", ...place]);
  await instance.line(/instance started/);
});
afterAll(() => terminal.close());

async function json(args: readonly string[]) {
  const ended = await terminal.holdfast([...args, ...place, "--json"]);
  return { ...ended, document: ended.stdout === "" ? undefined : JSON.parse(ended.stdout) };
}

async function words(args: readonly string[]) {
  return terminal.holdfast([...args, ...place]);
}

/** Hourly, but on one day of the year only, so that no tick comes in between. */
async function created(name: string, job: string, ...flags: string[]): Promise<void> {
  const when = flags.some((flag) => /^--(cron|every|at)$/.test(flag))
    ? []
    : ["--cron", "0 * 1 1 *"];
  const args = ["schedules", "create", name, "--job", job, ...when, ...flags];
  expect(await json(args)).toMatchObject({ code: 0, stderr: "" });
}

test("a schedule fires, and list, show, ticks, explain and runs say so", async () => {
  await created("often", "echo", "--every", "1s", "--input", '{"n":1}');
  const watched = terminal.begin(["schedules", "ticks", "often", "--watch", "50ms", ...place]);
  await watched.line(/fired +on_time/);
  watched.child.kill("SIGINT");
  expect(await watched.ended).toMatchObject({ code: 0, stderr: "" });

  const { document: ledger } = await json(["schedules", "ticks", "often", "--outcome", "fired"]);
  const [tick] = ledger.ticks;
  expect(tick).toMatchObject({ schedule: "often", outcome: "fired", lateMs: expect.any(Number) });
  const shown = await words(["runs", "show", tick.runId]);
  expect(shown.stdout).toMatch(/^schedule +often\ntick +\d{4}-.*Z, \d+(\.\d+)? m?s late\n/m);

  const list = await words(["schedules", "list", "--job", "echo"]);
  expect(list.stdout).toMatch(/^name +job +status|^name +job +when +status +next +last/);
  expect(list.stdout).toMatch(
    /often +echo +every second +active +(now|in \d+ s|\d+ s ago) +\d{4}-/,
  );

  const page = await words(["schedules", "show", "often"]);
  expect(page.stdout).toMatch(/last run +[0-9a-f-]{36} (pending|running|completed), tick of /);
  expect(page.stdout).toMatch(
    /Last ticks\ntick +outcome +reason +late +run +note\n.*fired +on_time/,
  );

  const explained = await json(["schedules", "explain", "often", tick.at]);
  expect(explained).toMatchObject({
    code: 0,
    document: { schedule: "often", at: tick.at, outcome: "fired", runId: tick.runId },
  });
  const said = await words(["schedules", "explain", "often", tick.at]);
  const { text, evidence } = explained.document;
  expect(said).toMatchObject({ code: 0, stderr: "" });
  expect(said.stdout.split("\n")).toEqual([
    text,
    ...evidence.map((line: string) => expect.stringContaining(line.slice(0, 10))),
    "",
  ]);

  const [day, time] = [tick.at.slice(0, 10), tick.at.slice(11, 19)];
  // As ISO, and as tables and explanations print it, quoted or in several words.
  for (const printed of [
    [`${day}T${time}Z`],
    [`${day} ${time}Z`],
    [day, `${time}Z`],
    [`${day} ${time} UTC`],
    [`Wed ${day} ${time} +00:00`],
  ])
    expect(await json(["schedules", "explain", "often", ...printed])).toMatchObject({
      document: { tick: tick.at, runId: tick.runId },
    });
  const last = (await json(["schedules", "explain", "often"])).document;
  expect(Date.parse(last.tick)).toBeGreaterThanOrEqual(Date.parse(tick.at));

  const all = await json(["runs", "list", "--schedule", "often", "--mode", "scheduled"]);
  expect(all.document.runs.length).toBeGreaterThan(0);
  expect(await json(["runs", "list", "--schedule", "none"])).toMatchObject({
    document: { runs: [] },
  });
  await words(["schedules", "delete", "often"]);
  // The ledger outlives its schedule.
  expect((await json(["schedules", "ticks", "often"])).document.ticks.length).toBeGreaterThan(0);
});

test("ticks go on where an earlier page ended", async () => {
  await created("paged", "echo", "--every", "1s", "--overlap", "allow");
  await until("two ticks are in the ledger", async () => (await ledgerOf("paged")).length >= 2);
  await words(["schedules", "pause", "paged"]);
  const all = await ledgerOf("paged");
  const first = await json(["schedules", "ticks", "paged", "--outcome", "fired", "--limit", "1"]);
  expect(first.document).toMatchObject({ ticks: [all[0]], nextCursor: expect.any(String) });
  const text = await words(["schedules", "ticks", "--outcome", "fired", "--limit", "1"]);
  expect(text.stdout).toMatch(/^schedule +tick[\s\S]*\nMore: add --cursor '/);
  const { nextCursor } = first.document;
  const rest = await json([
    ...["schedules", "ticks", "paged", "--outcome", "fired", "--limit", "1"],
    ...["--cursor", nextCursor],
  ]);
  expect(rest.document.ticks).toEqual([all[1]]);
});

async function ledgerOf(name: string) {
  const { document } = await json(["schedules", "ticks", name, "--outcome", "fired"]);
  return document.ticks;
}

test("trigger says the run's id; with --wait it shows the run", async () => {
  const options = ["--input", `{"a":1}`, "--tag", "eu", "--overlap", "allow"];
  await created("by-hand", "echo", ...options);
  const { code, stdout, stderr } = await words(["schedules", "trigger", "by-hand"]);
  expect({ code, stdout: steady(stdout), stderr }).toEqual({
    code: 0,
    stdout: "Run <id> stored.\n",
    stderr: "",
  });
  const waited = await json(["schedules", "trigger", "by-hand", "--wait"]);
  expect(waited).toMatchObject({
    code: 0,
    document: {
      runId: waited.document.run.id,
      run: {
        status: "completed",
        mode: "manual",
        schedule: "by-hand",
        input: { a: 1 },
        tags: ["eu"],
      },
    },
  });
  const tested = await json(["schedules", "test", "by-hand", "--wait", "--input", "[2]"]);
  expect(tested.document.run).toMatchObject({ mode: "test", result: { echoed: [2] } });
  const same = await json(["schedules", "trigger", "by-hand", "--mode", "test", "--wait"]);
  expect(same.document.run).toMatchObject({ mode: "test" });
});

test("trigger --wait of a run that fails ends with 1", async () => {
  await created("refused", "refuse");
  const { code, document } = await json(["schedules", "trigger", "refused", "--wait"]);
  expect({ code, status: document.run.status }).toEqual({ code: 1, status: "failed" });
});

test("a trigger that meets a live run is skipped with 1", async () => {
  await created("busy", "endless");
  const { document } = await json(["schedules", "trigger", "busy"]);
  await terminal
    .begin(["runs", "show", document.runId, "--watch", "20ms", ...place])
    .line(/running/);
  const { code, stdout } = await words(["schedules", "trigger", "busy"]);
  expect(code).toBe(1);
  expect(stdout).toMatch(/^skipped: locked by \S+:\d+:[0-9a-f-]{36} until \d{4}-\d\d-\d\d .*Z\n$/);
  expect(await json(["schedules", "trigger", "busy"])).toMatchObject({
    code: 1,
    document: { skipped: true, reason: "locked", holder: expect.any(String) },
  });
  await json(["runs", "cancel", document.runId]);
});

test("a run that waits has no holder", async () => {
  await created("waiting", "elsewhere");
  await json(["schedules", "trigger", "waiting"]);
  expect(await words(["schedules", "trigger", "waiting"])).toMatchObject({
    code: 1,
    stdout: "skipped: locked by a waiting run\n",
  });
});

test("trigger --if-due answers that nothing is due, or that it is paused", async () => {
  await created("later", "echo", "--at", "2099-01-31T09:00:00Z");
  expect(await words(["schedules", "trigger", "later", "--if-due"])).toMatchObject({
    code: 1,
    stdout: "skipped: not due; the next tick is 2099-01-31 09:00:00Z\n",
  });
  await words(["schedules", "pause", "later"]);
  expect(await json(["schedules", "trigger", "later", "--if-due"])).toMatchObject({
    code: 1,
    document: { skipped: true, reason: "paused" },
  });
});

test("the same delivery is the same run; with another input it is refused", async () => {
  await created("delivered", "echo");
  const args = ["schedules", "trigger", "delivered", "--delivery-id", "d-1"];
  const first = await json(args);
  expect(await json(args)).toMatchObject({ code: 0, document: first.document });
  const other = await json([...args, "--input", "1"]);
  expect(other).toMatchObject({ code: 1, stdout: "" });
  expect(JSON.parse(other.stderr)).toMatchObject({ error: "delivery_conflict" });
});

const RANGE = ["--from", "2026-01-01T00:00:00Z", "--to", "2026-01-01T04:00:00Z"];

test("backfill makes the runs of a range and says how far it is", async () => {
  await created("history", "echo");
  const { code, stdout, stderr } = await words(["schedules", "backfill", "history", ...RANGE]);
  expect({ code, stdout }).toEqual({ code: 0, stdout: "Done: 5 of 5 ticks: 5 runs made.\n" });
  expect(stderr).toMatch(/^0 of 5 ticks: 0 runs made\n([1-5] of 5 ticks: [1-5] runs? made.*\n)*$/);
  const again = await json(["schedules", "backfill", "history", ...RANGE, "--by", "ada"]);
  expect(again).toMatchObject({
    code: 0,
    document: { status: "done", total: 5, made: 0, passed: 5, createdBy: "ada", notCompleted: 0 },
  });
  const all = await json(["schedules", "backfill", "history", ...RANGE, "--all"]);
  expect(all.document).toMatchObject({ status: "done", made: 5, passed: 0 });
  const { document } = await json(["runs", "list", "--schedule", "history", "--mode", "backfill"]);
  expect(document.runs).toHaveLength(10);
});

test("a backfill whose runs fail ends with 1", async () => {
  await created("hopeless", "refuse");
  const { code, stdout } = await words(["schedules", "backfill", "hopeless", ...RANGE]);
  expect({ code, last: stdout.split("\n").at(-2) }).toEqual({
    code: 1,
    last: "Done: 5 of 5 ticks: 5 runs made, 5 did not complete.",
  });
});

test("a backfill goes on when its watcher leaves, and is cancelled by a word", async () => {
  await created("long", "endless");
  const session = terminal.begin(["schedules", "backfill", "long", ...RANGE, ...place]);
  await session.line(/^1 of 5 ticks: 1 run made/);
  const second = await json(["schedules", "backfill", "long", ...RANGE]);
  expect(second).toMatchObject({ code: 1, stdout: "" });
  expect(JSON.parse(second.stderr)).toMatchObject({
    error: "backfill_running",
    message: expect.stringMatching(/holdfast schedules backfill <name> --cancel/),
  });
  session.child.kill("SIGINT");
  const { code, stdout } = await session.ended;
  expect(code).toBe(1);
  expect(stdout).toMatch(/^Left at 1 of 5 ticks: 1 run made\. It goes on in the background/);
  expect((await words(["schedules", "show", "long"])).stdout).toMatch(
    /^Backfill in progress: 1 of 5/,
  );
  expect(await json(["schedules", "backfill", "long", "--cancel"])).toMatchObject({
    code: 0,
    document: { answer: "cancelled" },
  });
  expect(await words(["schedules", "backfill", "long", "--cancel"])).toMatchObject({
    code: 1,
    stdout: "There is no backfill of long to cancel.\n",
  });
});

test("a command that watches a backfill reports its cancel", async () => {
  await created("ended-early", "endless");
  const session = terminal.begin(["schedules", "backfill", "ended-early", ...RANGE, ...place]);
  await session.line(/^1 of 5 ticks/);
  await words(["schedules", "backfill", "ended-early", "--cancel"]);
  const { code, stdout } = await session.ended;
  expect(code).toBe(1);
  expect(stdout).toMatch(/^Cancelled: 1 of 5 ticks: 1 run made\.\n$/);
});

test("a backfill that is left alone says that it has begun; one without ticks that there are none", async () => {
  await created("detached", "echo");
  const { stdout } = await words(["schedules", "backfill", "detached", ...RANGE, "--detach"]);
  expect(steady(stdout)).toBe("Backfill <id> started: 0 of 5 ticks: 0 runs made.\n");
  const future = ["--from", "2098-01-01", "--to", "2099-01-01"];
  await created("without", "echo");
  expect(await words(["schedules", "backfill", "without", ...future])).toMatchObject({
    code: 0,
    stdout: "There is no tick in that range; nothing to do.\n",
  });
});

test("a backfill that waits for a worker says so once", async () => {
  await created("unserved", "elsewhere");
  const session = terminal.begin(["schedules", "backfill", "unserved", ...RANGE, ...place]);
  const line = await session.line(/^No progress/);
  expect(steady(line)).toBe(
    "No progress for <duration>: run <id> is waiting. Is an instance running that executes the job elsewhere?",
  );
  session.child.kill("SIGINT");
  expect((await session.ended).stderr.match(/No progress/g)).toHaveLength(1);
});
