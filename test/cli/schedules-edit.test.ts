// Tests creating, changing and reading schedules without an instance that fires them.

import { hostname, userInfo } from "node:os";
import { afterAll, beforeAll, expect, test } from "vitest";
import { configText, openTerminal, type Terminal } from "./terminal.js";

let terminal: Terminal;
const ME = `${userInfo().username}@${hostname()}`;
const PARIS = ["--cron", "30 2 * * *", "--tz", "Europe/Paris"];

beforeAll(async () => {
  terminal = openTerminal();
  const jobs = 'holdfast.job("report", {}); holdfast.job("mail", {});';
  terminal.write({ "holdfast.config.mjs": configText(jobs) });
  expect(await terminal.holdfast(["migrate"])).toMatchObject({ code: 0 });
  await create("minutely", "--cron", "* * * * *");
});
afterAll(() => terminal.close());

async function json(...args: string[]) {
  const ended = await terminal.holdfast([...args, "--json"]);
  return { ...ended, document: ended.stdout === "" ? undefined : JSON.parse(ended.stdout) };
}

async function create(name: string, ...flags: string[]) {
  const made = await json("schedules", "create", name, "--job", "report", ...flags);
  expect(made).toMatchObject({ code: 0, stderr: "" });
  return made.document;
}

test("create says when it ticks, and warns where the clocks change", async () => {
  const { code, stdout, stderr } = await terminal.holdfast([
    ...["schedules", "create", "nightly", "--job", "report", ...PARIS],
  ]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toMatch(
    /^Schedule nightly created: at 02:30 every day, Europe\/Paris\.\nNext tick: \d{4}-\d\d-\d\d 0[01]:30:00Z, in .+\.\n/,
  );
  expect(stdout).toMatch(/^Warning: 02:30 does not exist on .*: one tick at 03:00\.$/m);
  expect(stdout).toMatch(/^Warning: 02:30 comes twice on .*: one tick, at the first pass\.$/m);
});

test("a monitor is made, shown, checked in for and explained as remote work", async () => {
  const monitor = ["schedules", "create", "backup", "--monitor", "--cron", "0 3 1 1 *"];
  expect(await terminal.holdfast([...monitor, "--grace", "30m"])).toMatchObject({ code: 0 });
  const both = await terminal.holdfast([...monitor, "--job", "report"]);
  expect(both).toMatchObject({ code: 2, stderr: expect.stringMatching(/exclude each other/) });
  const neither = await terminal.holdfast(["schedules", "create", "x", "--cron", "0 3 * * *"]);
  expect(neither).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/--job report, or --monitor/),
  });
  const began = await terminal.holdfast(["schedules", "ping", "backup", "--state", "start"]);
  expect(began.stdout).toMatch(/^Begun .* Its end is expected by/);
  const fail = ["schedules", "ping", "backup", "--state", "fail", "--reason", "the disk is full"];
  expect((await terminal.holdfast(fail)).stdout).toMatch(/^Checked in as failed /);
  const { stdout: shown } = await terminal.holdfast(["schedules", "show", "backup"]);
  expect(shown).toMatch(/^monitor +watches remote work that checks in$/m);
  expect(shown).toMatch(/^check-in +\S+ failed/m);
  expect(shown).toMatch(/^grace +30m$/m);
  expect(shown).not.toMatch(/^(job|input|overlap|missed) /m);
  const { stdout: list } = await terminal.holdfast(["schedules", "list"]);
  expect(list).toMatch(/backup +\(monitor\) /);
  // Members that are not given stay; with a job it becomes an ordinary schedule.
  const longer = await json("schedules", "update", "backup", "--grace", "45m");
  expect(longer.document.schedule).toMatchObject({
    monitor: true,
    grace: "45m",
    cron: "0 3 1 1 *",
  });
  const refused = await terminal.holdfast(["schedules", "trigger", "backup"]);
  expect(refused).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/backup.* is a monitor/),
  });
  const { document } = await json("schedules", "update", "backup", "--job", "report");
  expect(document.schedule).toMatchObject({ monitor: false, job: "report" });
});

test("every flag reaches the schedule", async () => {
  await json("calendars", "set", "quiet", "--window", "22:00..06:00");
  const { schedule, warnings } = await create(
    "whole",
    ...["--cron", "15 9 * * mon-fri", "--timezone", "Europe/Paris"],
    ...["--from", "2030-01-01T00:00:00Z", "--until", "2031-01-01T00:00:00+01:00"],
    ...["--exclude", "12-25", "--exclude", "2030-05-01..2030-05-03", "--calendar", "quiet"],
    ...["--dst-gap", "skip", "--dst-overlap", "both"],
    ...["--input", '{"market":"eu"}', "--overlap", "queue"],
    ...["--missed", "all", "--missed-within", "6h", "--missed-limit", "7"],
    ...["--after-failure", "20m..40m", "--grace", "90s"],
    ...["--priority", "-5", "--queue", "slow", "--tag", "eu", "--tag", "nightly"],
  );
  expect(warnings).toEqual([]);
  expect(schedule).toMatchObject({
    job: "report",
    cron: "15 9 * * mon-fri",
    every: null,
    at: null,
    timezone: "Europe/Paris",
    dst: { gap: "skip", overlap: "both" },
    from: "2030-01-01T00:00:00.000Z",
    until: "2030-12-31T23:00:00.000Z",
    exclude: ["12-25", "2030-05-01..2030-05-03"],
    calendars: ["quiet"],
    input: { market: "eu" },
    overlap: "queue",
    missed: { run: "all", within: "6h", limit: 7 },
    afterFailure: "20m..40m",
    grace: "90s",
    priority: -5,
    queue: "slow",
    tags: ["eu", "nightly"],
    source: "api",
    version: 1,
  });
});

test("update keeps the members that are not given", async () => {
  const { document: before } = await json("schedules", "show", "whole");
  const { code, document } = await json("schedules", "update", "whole", "--missed-limit", "9");
  expect(code).toBe(0);
  const own = [
    "missed",
    "version",
    "updatedAt",
    "preview",
    "ticks",
    "versionCount",
    "backfill",
    "pausedAll",
  ];
  const rest = (schedule: object) =>
    Object.fromEntries(Object.entries(schedule).filter(([name]) => !own.includes(name)));
  expect(rest(document.schedule)).toEqual(rest(before));
  expect(document.schedule).toMatchObject({
    version: 2,
    missed: { run: "all", within: "6h", limit: 9 },
  });
});

test("update to another kind of rhythm drops what belonged to the old one", async () => {
  await create("rhythm", ...PARIS, "--dst-gap", "skip", "--tag", "a");
  const every = await json("schedules", "update", "rhythm", "--every", "10m");
  expect(every.document.schedule).toMatchObject({
    cron: null,
    dst: null,
    every: "10m",
    timezone: "Europe/Paris",
    tags: ["a"],
  });
  const back = await json("schedules", "update", "rhythm", "--cron", "0 4 * * *");
  expect(back.document.schedule).toMatchObject({ cron: "0 4 * * *", every: null });
  const clocks = await json("schedules", "update", "rhythm", "--dst-overlap", "second");
  expect(clocks.document.schedule.dst).toEqual({ gap: "after", overlap: "second" });
  const once = await json("schedules", "update", "rhythm", "--at", "2099-01-01T00:00:00Z");
  expect(once.document.schedule).toMatchObject({ cron: null, at: "2099-01-01T00:00:00.000Z" });
});

test("update --unset removes optional members", async () => {
  const names = "from,until,exclude,calendar,input,missed-within,after-failure,priority,queue,tag";
  const { code, document } = await json("schedules", "update", "whole", "--unset", names);
  expect(code).toBe(0);
  expect(document.schedule).toMatchObject({
    ...{ from: null, until: null, exclude: [], calendars: [], input: null },
    ...{ afterFailure: null, priority: null, queue: null, tags: [] },
    missed: { run: "all", within: null },
    overlap: "queue",
  });
});

test("an update that changes nothing says so and makes no version", async () => {
  await create("same", "--every", "10m");
  const { code, stdout } = await terminal.holdfast([
    "schedules",
    "update",
    "same",
    "--every",
    "10m",
  ]);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^Schedule same is unchanged: every 10 minutes\.\n/);
  expect((await json("schedules", "versions", "same")).document.versions).toHaveLength(1);
});

test("create refuses a name that exists, and says what to do", async () => {
  await create("taken", "--every", "1h");
  const args = ["schedules", "create", "taken", "--job", "mail", "--every", "2h"];
  expect(await terminal.holdfast(args)).toMatchObject({
    code: 1,
    stdout: "",
    stderr:
      "The schedule taken already exists; nothing was changed. To change it: holdfast schedules update taken …\n",
  });
  const { document } = await json("schedules", "show", "taken");
  expect(document).toMatchObject({ job: "report", every: "1h" });
});

test("an unknown name is answered with the one that was probably meant", async () => {
  await create("market-study", "--every", "1h");
  const commands = [
    ...[
      "show",
      "delete",
      "pause",
      "resume",
      "trigger",
      "test",
      "preview",
      "ticks",
      "versions",
      "ping",
    ],
  ].map((verb) => [verb, "market-stduy"]);
  const range = ["--from", "2026-01-01", "--to", "2026-01-02"];
  for (const args of [
    ...commands,
    ["update", "market-stduy", "--every", "1h"],
    ["explain", "market-stduy", "2026-01-01T00:00:00Z"],
    ["backfill", "market-stduy", ...range],
    ["backfill", "market-stduy", "--cancel"],
  ]) {
    const { code, stdout, stderr } = await terminal.holdfast(["schedules", ...args]);
    expect({ args, code, stdout }).toEqual({ args, code: 1, stdout: "" });
    expect(stderr).toBe(
      "There is no schedule market-stduy. Did you mean market-study?\n`holdfast schedules list` shows them.\n",
    );
  }
  const { stderr } = await json("schedules", "show", "market-stduy");
  expect(JSON.parse(stderr)).toMatchObject({ error: "schedule_not_found" });
});

test("an unknown job is refused as a wrong call", async () => {
  const args = ["schedules", "create", "x", "--job", "reprot", "--every", "1h"];
  const { code, stderr } = await terminal.holdfast(args);
  expect(code).toBe(2);
  expect(stderr).toMatch(/^No job is named reprot\. Did you mean report\?/);
});

test("pause keeps who and why, and show says it first; resume ends it", async () => {
  await create("paused", "--cron", "@daily");
  const args = ["schedules", "pause", "paused", "--note", "the source is being moved"];
  expect(await terminal.holdfast(args)).toMatchObject({
    code: 0,
    stdout: "Schedule paused is paused (the source is being moved); runs it has made go on.\n",
  });
  const { stdout } = await terminal.holdfast(["schedules", "show", "paused"]);
  expect(stdout).toMatch(/^Paused since .*Z \(.*\) by .+@.+: the source is being moved\n/);
  expect(stdout).toMatch(/\nNext ticks, if it is resumed\n/);
  const { document } = await json("schedules", "list", "--status", "paused");
  expect(document.schedules).toMatchObject([
    { name: "paused", pausedBy: ME, pauseNote: "the source is being moved", nextAt: null },
  ]);
  const resumed = await terminal.holdfast(["schedules", "resume", "paused", "--by", "ada"]);
  expect(resumed.stdout).toMatch(
    /^Schedule paused is active\. Next tick: .*T?00:00:00Z, in .*\.\n$/,
  );
  expect((await terminal.holdfast(["schedules", "list", "--status", "paused"])).stdout).toBe(
    "No schedules.\n",
  );
});

test("delete keeps the versions; a schedule of that name can be made again", async () => {
  await create("gone", "--every", "1h");
  await json("schedules", "update", "gone", "--every", "2h", "--tag", "b", "--by", "ada");
  expect(await terminal.holdfast(["schedules", "delete", "gone"])).toMatchObject({
    code: 0,
    stdout: "Schedule gone deleted.\n",
  });
  expect(await terminal.holdfast(["schedules", "show", "gone"])).toMatchObject({ code: 1 });
  await create("gone", "--every", "3h");
  const { document } = await json("schedules", "versions", "gone");
  expect(document.versions).toMatchObject([
    { version: 1, kind: "created", by: ME, every: "1h" },
    { version: 2, kind: "edited", by: "ada", every: "2h" },
    { version: 3, kind: "deleted" },
    { version: 4, kind: "recreated", every: "3h" },
  ]);
  const { stdout } = await terminal.holdfast(["schedules", "versions", "gone"]);
  expect(stdout).toMatch(/^version +kind +at +by +when +changed\n/);
  expect(stdout).toMatch(/^2 +edited +.*Z +ada +every 2 hours +tags, every$/m);
});

test("show has everything about one schedule", async () => {
  await create("shown", ...PARIS, "--input", '{"a":1}', "--missed", "all", "--tag", "eu");
  const { code, stdout } = await terminal.holdfast(["schedules", "show", "shown"]);
  expect(code).toBe(0);
  const steady = stdout
    .replace(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z/g, "<time>")
    .replace(/^<time>.*$/gm, "<tick>")
    .replace(/changed <time> \(.*\)/, "changed <time>");
  expect(steady).toBe(`schedule     shown
status       active
job          report
when         at 02:30 every day, Europe/Paris
input        {"a":1}
made by      a call of holdfast
version      1 (1 version kept), changed <time>

Rules
cron         30 2 * * *
timezone     Europe/Paris
dst          gap after, overlap first
overlap      skip
missed       all, at most 100
grace        30s
tags         eu

Next ticks
tick                      local time                      from now
<tick>
<tick>
<tick>
<tick>
<tick>

Last ticks
None yet.
`);
  expect((await json("schedules", "show", "shown")).document).toMatchObject({
    name: "shown",
    preview: { ticks: { length: 5 }, notes: expect.any(Array) },
    ticks: [],
    versionCount: 1,
    backfill: null,
  });
});

test("list is a table for people, and goes on where it ended", async () => {
  await create("zz-1", "--every", "1h");
  await create("zz-2", ...PARIS, "--until", "2098-12-31T00:00:00Z");
  const { stdout } = await terminal.holdfast(["schedules", "list", "--cursor", "zz"]);
  expect(stdout).toMatch(/^name +job +when +status +next +last\n/);
  expect(stdout).toMatch(/\nzz-1 +report +every hour +active +in .*\d (min|s|h) +\d{4}-.*Z\n/);
  expect(stdout).toMatch(/\nzz-2 +report +at 02:30 every day, Europe\/Paris, until… +active/);
  const first = await json("schedules", "list", "--cursor", "zz", "--limit", "1");
  expect(first.document).toMatchObject({ schedules: [{ name: "zz-1" }], nextCursor: "zz-1" });
  const text = await terminal.holdfast(["schedules", "list", "--cursor", "zz", "--limit", "1"]);
  expect(text.stdout).toMatch(/\nMore: add --cursor zz-1\n$/);
});

test("list --watch shows the list again until it is stopped", async () => {
  const args = ["schedules", "list", "--job", "mail", "--watch", "20ms"];
  const session = terminal.begin(args);
  await session.line(/No schedules\./);
  await terminal.holdfast(["schedules", "create", "post", "--job", "mail", "--every", "1h"]);
  await session.line(/post +mail/);
  await session.line(/post +mail/);
  session.child.kill("SIGINT");
  expect(await session.ended).toMatchObject({ code: 0, stderr: "" });
});

test("preview shows the ticks and where the clocks change", async () => {
  await create("previewed", ...PARIS);
  const { code, document } = await json("schedules", "preview", "previewed", "--count", "400");
  expect(code).toBe(0);
  expect(document.ticks).toHaveLength(400);
  expect(document.notes).toHaveLength(2);
  const { stdout } = await terminal.holdfast(["schedules", "preview", "previewed", "--count", "2"]);
  expect(stdout).toMatch(
    /^at 02:30 every day, Europe\/Paris\ntick +local time +from now\n(\S+Z {2}\w{3} \S+ 0[23]:\d0:00 \+0[12]:00 {2}in .+\n){2}$/,
  );
});

test("input may come from standard input", async () => {
  const args = ["schedules", "create", "piped", "--job", "report", "--every", "1h", "--input", "-"];
  expect(await terminal.holdfast(args, { input: '{"long":true}' })).toMatchObject({ code: 0 });
  expect((await json("schedules", "show", "piped")).document.input).toEqual({ long: true });
});

test("a backfill without a worker is reported once", async () => {
  const range = ["--from", "2026-01-01T00:00:00Z", "--to", "2026-01-01T00:04:00Z"];
  const session = terminal.begin(["schedules", "backfill", "minutely", ...range]);
  await session.line(
    /^No progress for 10 s: no instance with the scheduler on seems to be running\./,
  );
  session.child.kill("SIGINT");
  const { code, stdout, stderr } = await session.ended;
  expect(code).toBe(1);
  expect(stdout).toMatch(/^Left at 0 of 5 ticks/);
  expect(stderr.match(/No progress/g)).toHaveLength(1);
  expect(await json("schedules", "backfill", "minutely", "--cancel")).toMatchObject({ code: 0 });
});

test("concurrent changes are all stored", async () => {
  await terminal.holdfast(["schedules", "create", "shared", "--job", "report", "--every", "1h"]);
  const flags = [
    ["--queue", "slow"],
    ["--priority", "7"],
    ["--grace", "90s"],
    ["--tag", "together"],
    ["--overlap", "queue"],
  ];
  const ended = await Promise.all(
    flags.map((each) => terminal.holdfast(["schedules", "update", "shared", ...each])),
  );
  expect(ended.map(({ code, stderr }) => ({ code, stderr }))).toEqual(
    flags.map(() => ({ code: 0, stderr: "" })),
  );
  const { stdout } = await terminal.holdfast(["schedules", "show", "shared", "--json"]);
  expect(JSON.parse(stdout)).toMatchObject({
    queue: "slow",
    priority: 7,
    grace: "90s",
    tags: ["together"],
    overlap: "queue",
    version: 6,
  });
});

const MISTAKES: readonly [name: string, args: string[], message: RegExp][] = [
  ["no job", ["create", "x", "--every", "1h"], /Name what it runs: --job report, or --monitor/],
  ["no rhythm", ["create", "x", "--job", "report"], /^Name when it ticks: --cron "30 2 \* \* \*"/],
  [
    "two rhythms",
    ["create", "x", "--job", "report", "--every", "1h", "--cron", "@daily"],
    /^--cron and --every exclude each other/,
  ],
  [
    "everything wrong at once",
    [
      ...["create", "x", "--job", "report", "--cron", "61 * * * *", "--tz", "Europe/Pari"],
      ...["--exclude", "someday", "--calendar", "quite", "--after-failure", "soon"],
    ],
    /^--cron: .*61.*\n--timezone: .*Did you mean "Europe\/Paris"\?\n--exclude: .*someday.*\n--calendar: .*Did you mean "quiet"\?\n--after-failure: /,
  ],
  [
    "a time that has passed",
    ["create", "x", "--job", "report", "--at", "2020-01-01"],
    /^--at: .*has passed/,
  ],
  [
    "a time without a zone",
    ["create", "x", "--job", "report", "--at", "2030-01-01T00:00"],
    /a time with its zone such as/,
  ],
  [
    "clocks for an interval",
    ["create", "x", "--job", "report", "--every", "1h", "--dst-gap", "skip"],
    /^--dst: goes only with cron/,
  ],
  [
    "a bad policy",
    ["create", "x", "--job", "report", "--every", "1h", "--missed", "lates"],
    /Did you mean latest\?/,
  ],
  [
    "input that is no JSON",
    ["create", "x", "--job", "report", "--every", "1h", "--input", "{a}"],
    /^The input is not JSON/,
  ],
  [
    "an empty name",
    ["create", "", "--job", "report", "--every", "1h"],
    /must be a text of 1 to 200/,
  ],
  ["nothing to change", ["update", "nightly"], /^Name what to change/],
  ["an unknown member to unset", ["update", "nightly", "--unset", "tags"], /Did you mean tag\?/],
  [
    "a member that is set and unset",
    ["update", "nightly", "--unset", "after-failure", "--after-failure", "1m"],
    /^--after-failure and --unset after-failure contradict each other/,
  ],
  [
    "a due tick with an input",
    ["trigger", "nightly", "--if-due", "--input", "1"],
    /^--if-due goes without --mode and --input/,
  ],
  [
    "a time limit without waiting",
    ["test", "nightly", "--timeout", "1s"],
    /^--timeout limits --wait/,
  ],
  [
    "a backfill without a range",
    ["backfill", "nightly", "--from", "2026-01-01"],
    /^Give the range/,
  ],
  [
    "a cancelled range",
    ["backfill", "nightly", "--cancel", "--all"],
    /give it without other flags/,
  ],
  [
    "a range that ends before it begins",
    ["backfill", "nightly", "--from", "2026-01-02", "--to", "2026-01-01"],
    /^--to: must not be before/,
  ],
  [
    "a range that is too long",
    ["backfill", "minutely", "--from", "2000-01-01", "--to", "2020-01-01"],
    /^It covers \d+ ticks; at most 100000 at a time/,
  ],
  [
    "a wrong rule among the alerts",
    ["create", "x", "--job", "report", "--every", "1h", "--alerts", '{"stale":"soon"}'],
    /^--alerts: stale must be a duration such as "30s"/,
  ],
  [
    "an instant without a zone",
    ["explain", "nightly", "2026-01-01T00:00"],
    /a time with its zone such as/,
  ],
  ["a bad outcome", ["ticks", "--outcome", "mised"], /Did you mean missed\?/],
  ["a mistyped command", ["lst"], /unknown command 'lst'\n\(Did you mean list\?\)/],
  [
    "a watched document",
    ["list", "--json", "--watch", "1s"],
    /--watch and --json exclude each other/,
  ],
];

test.for(MISTAKES)("%s is refused", async ([, args, message]) => {
  const { code, stdout, stderr } = await terminal.holdfast(["schedules", ...args]);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toMatch(message);
});
