// Tests the commands that store, read and change runs, as text and as JSON.

import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../support/until.js";
import { configText, openTerminal, type Session, steady, type Terminal } from "./terminal.js";

const JOBS = `
holdfast.job("echo", { run: (input) => ({ echoed: input }) });
holdfast.job("refuse", { run: () => { throw new PermanentError("no such market", { code: "NO_MARKET" }); } });
holdfast.job("flaky", {
  retry: { delay: 0 },
  run(input, ctx) { if (ctx.attempt === 1) throw new Error("hung up"); return "second time lucky"; },
});
holdfast.job("endless", { run: (input, ctx) => pause(600_000, null, { signal: ctx.signal }) });
holdfast.job("elsewhere", {});
holdfast.job("parts", {
  async run(input, ctx) {
    for (const key of ["a", "b", "c"])
      await ctx.item(key, () => { if (key === "b") throw new Error("no such part"); return key; }, { onError: "record" });
  },
});
holdfast.job("telling", {
  async run(input, ctx) {
    await ctx.progress({ stage: "load" });
    ctx.log.info({ market: "eu" }, "loaded\\u001b[31m");
    await ctx.progress({ stage: "sort", done: 1, total: 4 });
    ctx.log.warn("slow");
    if (input.waits) await pause(600_000, null, { signal: ctx.signal });
  },
});
holdfast.job("approval", {
  async run(input, ctx) {
    await ctx.step("ask", () => ({ asked: "ada" }));
    return ctx.waitFor("approved", { key: input.order, timeout: "6h" });
  },
});
holdfast.job("fan", {
  run: (input, ctx) => ctx.enqueueBatch(
    [{ job: "echo", input: 1 }, { job: "refuse", input: 2 }, { job: "nobody", input: 3 }], { then: "echo" }),
});
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

async function json(args: readonly string[], input?: string) {
  const ended = await terminal.holdfast(
    [...args, ...place, "--json"],
    input === undefined ? {} : { input },
  );
  return { ...ended, document: ended.stdout === "" ? undefined : JSON.parse(ended.stdout) };
}

async function enqueued(job: string, ...flags: string[]): Promise<string> {
  const { document, stderr } = await json(["enqueue", job, "{}", ...flags]);
  expect(stderr).toBe("");
  return document.id;
}

test("enqueue stores a run and says its id", async () => {
  const { code, stdout, stderr } = await terminal.holdfast(["enqueue", "echo", "{}", ...place]);
  expect({ code, stdout: steady(stdout), stderr }).toEqual({
    code: 0,
    stdout: "Run <id> stored.\n",
    stderr: "",
  });
});

test("runs show prints the progress of a run, and runs logs its lines", async () => {
  const id = await enqueued("telling", "--wait");
  const shown = await terminal.holdfast(["runs", "show", id, ...place]);
  expect(shown.stdout).toMatch(/^progress {5}sort \[#{5}-{15}\] 1 of 4 \(25 %\)$/m);
  expect(shown.stdout).toMatch(/^stages {7}load \(2\S+ \S+Z\), sort \(2\S+ \S+Z\)$/m);
  const logs = await terminal.holdfast(["runs", "logs", id, ...place]);
  const lines = logs.stdout.trimEnd().split("\n");
  expect(lines).toHaveLength(2);
  expect(lines[0]).toMatch(/^2\S+Z #1 info {2}loaded\uFFFD\[31m \{"market":"eu"\}$/);
  expect(lines[1]).toMatch(/^2\S+Z #1 warn {2}slow$/);
  const { document } = await json(["runs", "logs", id]);
  expect(document).toMatchObject({
    lines: [
      { level: "info", attempt: 1, fields: { market: "eu" } },
      { level: "warn", attempt: 1, message: "slow", fields: {} },
    ],
    cursor: expect.any(String),
  });
});

test("runs logs --follow shows lines as they come, until the run has ended", async () => {
  const { document } = await json(["enqueue", "telling", '{"waits":true}']);
  const session = terminal.begin(["runs", "logs", document.id, "--follow", ...place]);
  await session.line(/warn {2}slow$/);
  await json(["runs", "cancel", document.id]);
  expect((await session.ended).code).toBe(0);
  const both = await terminal.holdfast([
    "runs",
    "logs",
    document.id,
    "--follow",
    "--json",
    ...place,
  ]);
  expect(both.code).toBe(2);
  const none = await json(["runs", "logs", crypto.randomUUID()]);
  expect([none.code, none.document]).toEqual([1, null]);
});

test("enqueue --wait shows the run once it has completed", async () => {
  const args = ["enqueue", "echo", '{"a":1}', "--wait", "--tag", "eu", "--tag", "nightly"];
  const { code, stdout } = await terminal.holdfast([...args, ...place]);
  expect(code).toBe(0);
  expect(steady(stdout)).toMatchInlineSnapshot(`
    "Run <id> stored.
    run  <id>
    job  echo
    status  completed
    mode  enqueued
    queue  default, priority 0
    attempt  1
    tags  eu, nightly
    created  <time>
    due  <time>
    started  <time>
    finished  <time>
    took  <duration>
    holder  <holder>
    fence  <fence>
    input  {"a":1}
    result  {"echoed":{"a":1}}

    attempt  fence  ended  started  took  note
    1  <fence>  completed  <time>  <duration>
    "
  `);
});

test("enqueue --wait answers with the whole run as JSON", async () => {
  const { code, document } = await json(["enqueue", "echo", "-", "--wait"], '{ "a": [1] }');
  expect(code).toBe(0);
  expect(document).toMatchObject({
    id: document.run.id,
    deduplicated: false,
    run: {
      job: "echo",
      status: "completed",
      mode: "enqueued",
      input: { a: [1] },
      result: { echoed: { a: [1] } },
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      attempts: [{ attempt: 1, end: "completed" }],
    },
  });
});

test("enqueue --wait of a run that fails ends with 1", async () => {
  const { code, document } = await json(["enqueue", "refuse", "{}", "--wait"]);
  expect(code).toBe(1);
  expect(document.run).toMatchObject({
    status: "failed",
    error: { code: "NO_MARKET", message: "no such market" },
  });
});

test("enqueue --wait gives up after its time limit, and the run goes on", async () => {
  const args = ["enqueue", "endless", "{}", "--wait", "--timeout", "50ms"];
  const { code, stdout, stderr } = await json(args);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(JSON.parse(stderr)).toMatchObject({
    error: "wait_timeout",
    message: expect.stringMatching(/had not ended after 50 ms; it goes on/),
  });
});

test("the same key is the same run; with another input it is refused", async () => {
  const first = await json(["enqueue", "echo", '{"n":1}', "--key", "order-1"]);
  const again = await json(["enqueue", "echo", '{"n":1}', "--key", "order-1"]);
  expect(first.document).toEqual({ id: expect.any(String), deduplicated: false });
  expect(again).toMatchObject({
    code: 0,
    document: { id: first.document.id, deduplicated: true },
  });
  const other = await json(["enqueue", "echo", '{"n":2}', "--key", "order-1"]);
  expect(other).toMatchObject({ code: 1, stdout: "" });
  expect(JSON.parse(other.stderr)).toMatchObject({ error: "key_conflict" });
});

test("an unknown job is named with the one that was probably meant", async () => {
  const { code, stdout, stderr } = await terminal.holdfast(["enqueue", "ecko", "{}", ...place]);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toMatch(
    /No job is named ecko\. Did you mean echo\? Known: approval, echo, elsewhere/,
  );
});

test("show prints the input that enqueue was given", async () => {
  const at = "2099-01-31T09:00:00.000Z";
  const options = ["--at", at, "--priority", "-5", "--queue", "slow", "--tag", "a"];
  const id = await enqueued("elsewhere", ...options);
  const { code, document } = await json(["runs", "show", id]);
  expect(code).toBe(0);
  expect(document).toMatchObject({
    id,
    status: "pending",
    dueAt: at,
    priority: -5,
    queue: "slow",
    tags: ["a"],
    attempts: [],
  });
});

test("a delay counts from now", async () => {
  const id = await enqueued("elsewhere", "--delay", "10m");
  const { document } = await json(["runs", "show", id]);
  const waitMs = Date.parse(document.dueAt) - Date.parse(document.createdAt);
  expect(waitMs).toBe(600_000);
});

test("runs show lists the attempts", async () => {
  const { document } = await json(["enqueue", "flaky", "{}", "--wait"]);
  const { code, stdout } = await terminal.holdfast(["runs", "show", document.id, ...place]);
  expect(code).toBe(0);
  expect(steady(stdout)).toMatchInlineSnapshot(`
    "run  <id>
    job  flaky
    status  completed
    mode  enqueued
    queue  default, priority 0
    attempt  2
    created  <time>
    due  <time>
    started  <time>
    finished  <time>
    took  <duration>
    holder  <holder>
    fence  <fence>
    input  {}
    result  "second time lucky"

    attempt  fence  ended  started  took  note
    1  <fence>  failed  <time>  <duration>  hung up
    2  <fence>  completed  <time>  <duration>
    "
  `);
});

test("a run that does not exist is answered with 1, as JSON with null", async () => {
  const id = "0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55";
  for (const command of ["show", "items", "logs", "children"])
    expect(await json(["runs", command, id]), command).toMatchObject({
      code: 1,
      document: null,
      stderr: `There is no run ${id}: it never existed, or it was pruned.\n`,
    });
});

test("runs list filters, and goes on where it ended", async () => {
  for (const tag of ["page", "page", "page"]) await enqueued("elsewhere", "--tag", tag);
  const first = await json(["runs", "list", "--tag", "page", "--limit", "2"]);
  expect(first.document.runs).toHaveLength(2);
  const cursor = first.document.nextCursor;
  const rest = await json(["runs", "list", "--tag", "page", "--limit", "2", "--cursor", cursor]);
  expect(rest.document).toMatchObject({ runs: [{ job: "elsewhere" }], nextCursor: null });
  const none = await terminal.holdfast(["runs", "list", "--mode", "backfill", ...place]);
  expect(none).toMatchObject({ code: 0, stdout: "No runs.\n" });
});

test("runs list is a table for people", async () => {
  await json(["enqueue", "refuse", '{"table":1}', "--wait"]);
  const args = ["runs", "list", "--job", "refuse", "--status", "failed", "--limit", "1"];
  const { code, stdout } = await terminal.holdfast([...args, ...place]);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^id +job +status +attempt +created +took +note/);
  expect(stdout).toMatch(/refuse +failed +1 +\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ +.* +no such market/);
});

test("log lines of a run cannot steer the terminal", async () => {
  const { document } = await json(["enqueue", "echo", JSON.stringify("\u001b[2J\u0007"), "--wait"]);
  const { stdout } = await terminal.holdfast(["runs", "show", document.id, ...place]);
  for (const byte of ["\u001b", "\u0007"]) expect(stdout).not.toContain(byte);
});

test("runs list --watch shows the list again until it is stopped", async () => {
  const session = terminal.begin(["runs", "list", "--tag", "watched", "--watch", "20ms", ...place]);
  await session.line(/No runs\./);
  await enqueued("elsewhere", "--tag", "watched");
  await session.line(/elsewhere +pending/);
  await session.line(/elsewhere +pending/);
  session.child.kill("SIGINT");
  expect(await session.ended).toMatchObject({ code: 0, stderr: "" });
});

test("runs show --watch ends with its run", async () => {
  const id = await enqueued("endless");
  const session = terminal.begin(["runs", "show", id, "--watch", "20ms", ...place]);
  await session.line(/status +running/);
  await json(["runs", "cancel", id]);
  await session.line(/status +cancelled/);
  expect(await session.ended).toMatchObject({ code: 0, stderr: "" });
});

test("a pending run is cancelled at once, and retried", async () => {
  const id = await enqueued("elsewhere");
  expect(await json(["runs", "cancel", id])).toMatchObject({
    code: 0,
    document: { id, answer: "cancelled" },
  });
  expect(await json(["runs", "cancel", id])).toMatchObject({
    code: 1,
    document: { id, answer: "already_terminal" },
  });
  const retried = await terminal.holdfast(["runs", "retry", id, ...place]);
  expect(retried).toMatchObject({
    code: 0,
    stdout: `Run ${id}: pending again, with one more attempt.\n`,
  });
  expect(await json(["runs", "retry", id])).toMatchObject({
    code: 1,
    document: { id, answer: "not_terminal" },
  });
});

test("a retry from a step names a step that the run does not have, and does not go with its children", async () => {
  const id = await enqueued("elsewhere");
  await json(["runs", "cancel", id]);
  const unknown = await terminal.holdfast(["runs", "retry", id, "--from-step", "paint", ...place]);
  expect(unknown.code).toBe(3);
  expect(unknown.stderr).toContain('"paint"');
  const both = ["runs", "retry", id, "--from-step", "paint", "--children", ...place];
  expect(await terminal.holdfast(both)).toMatchObject({ code: 2, stdout: "" });
});

test("a run that does not exist can be neither cancelled nor retried", async () => {
  const id = "0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55";
  for (const verb of ["cancel", "retry"]) {
    expect(await terminal.holdfast(["runs", verb, id, ...place])).toMatchObject({
      code: 1,
      stdout: `Run ${id}: not found: it never existed, or it was pruned.\n`,
      stderr: "",
    });
  }
});

test("a completed run is not retried", async () => {
  const { document } = await json(["enqueue", "echo", "{}", "--wait"]);
  expect(await json(["runs", "retry", document.id])).toMatchObject({
    code: 1,
    document: { answer: "completed" },
  });
});

test("the configuration file of the folder says which database and which jobs", async () => {
  const other = openTerminal();
  try {
    const schema = `{ "~standard": { version: 1, vendor: "test", validate: (value) =>
      typeof value?.n === "number" ? { value } : { issues: [{ message: "must be a number", path: ["n"] }] } } }`;
    other.write({
      "holdfast.config.mjs": configText(`holdfast.job("add", { input: ${schema} });`),
    });
    const wrong = await other.holdfast(["enqueue", "add", '{"n":"1"}']);
    expect(wrong).toMatchObject({ code: 2, stdout: "" });
    expect(wrong.stderr).toMatch(/input\.n: must be a number/);
    expect(await other.holdfast(["enqueue", "add", '{"n":1}'])).toMatchObject({ code: 0 });
    const listed = await other.holdfast(["runs", "list", "--json", "--database", "sqlite:app.db"]);
    expect(JSON.parse(listed.stdout).runs).toMatchObject([{ job: "add", status: "pending" }]);
  } finally {
    await other.close();
  }
});

test("output of a configuration file does not spoil the JSON document", async () => {
  const other = openTerminal();
  try {
    other.write({
      "holdfast.config.mjs": configText('console.log("hello"); holdfast.job("add", {});'),
    });
    const { stdout, stderr } = await other.holdfast(["enqueue", "add", "1", "--json"]);
    expect(JSON.parse(stdout)).toEqual({ id: expect.any(String), deduplicated: false });
    expect(stderr).toBe("hello\n");
  } finally {
    await other.close();
  }
});

test("runs show counts items and names the slowest; runs items lists them", async () => {
  const id = await enqueued("parts");
  await terminal.holdfast(["runs", "show", id, "--watch", "200ms", ...place]);
  const shown = await terminal.holdfast(["runs", "show", id, ...place]);
  expect(shown.stdout).toMatch(/items\s+3: 1 failed, 2 ok \(partial\)/);
  expect(shown.stdout).toMatch(/slowest items\n\s*item\s+outcome/);
  const listed = await terminal.holdfast(["runs", "items", id, "--outcome", "failed", ...place]);
  expect(listed.stdout).toMatch(/\bb\s+failed\s+1\s.*no such part/);
  const { document } = await json(["runs", "items", id, "--slowest", "--limit", "2"]);
  expect(document.items).toHaveLength(2);
  expect(document.nextCursor).toEqual(expect.any(String));
  const rest = await json(["runs", "items", id, "--slowest", "--cursor", document.nextCursor]);
  expect(rest.document.items).toHaveLength(1);
  const unknown = await json(["runs", "items", "0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55"]);
  expect(unknown).toMatchObject({ code: 1, document: null });
});

test("runs children shows batches with their counts, and the runs that were made", async () => {
  const { document: fan } = await json(["enqueue", "fan", "{}", "--wait"]);
  await until("the batch has ended", async () => {
    const { document } = await json(["runs", "children", fan.id]);
    return document.batches[0]?.then !== null;
  });
  const { code, stdout } = await terminal.holdfast(["runs", "children", fan.id, ...place]);
  expect(code).toBe(0);
  expect(steady(stdout)).toContain("batch  scheduled  refused  completed  failed  cancelled  then");
  expect(stdout).toContain("batch[2]: JOB_UNKNOWN");
  const failed = await json(["runs", "children", fan.id, "--failed"]);
  expect(failed.document).toMatchObject({
    batches: [{ name: "batch", scheduled: 2, completed: 1, failed: 1 }],
    runs: [{ job: "refuse", status: "failed", parent: fan.id }],
    nextCursor: null,
  });
});

test("runs retry --children gives every failed child one attempt more", async () => {
  const { document: fan } = await json(["enqueue", "fan", "{}", "--wait"]);
  await until("the batch has ended", async () => {
    const { document } = await json(["runs", "children", fan.id]);
    return document.batches[0]?.then !== null;
  });
  const none = await terminal.holdfast(["runs", "retry", fan.id, "--batch", "batch", ...place]);
  expect(none).toMatchObject({ code: 2 });
  expect(await json(["runs", "retry", fan.id, "--children", "--batch", "other"])).toMatchObject({
    code: 1,
    document: { id: fan.id, retried: 0 },
  });
  const retried = await terminal.holdfast(["runs", "retry", fan.id, "--children", ...place]);
  expect({ ...retried, stdout: steady(retried.stdout) }).toMatchObject({
    code: 0,
    stdout: "Run <id>: 1 failed child is pending again.\n",
  });
});

test("with --json nothing that steers a terminal or turns its text is printed as it is", async () => {
  const input = { text: "a\u009b31m b\u202egnp.exe\u2066 c\u007f d\u2028 e\u200f" };
  const stored = await json(["enqueue", "echo", JSON.stringify(input), "--wait"]);
  const shown = await json(["runs", "show", stored.document.id]);
  expect(shown.document.input).toEqual(input);
  const refused = await terminal.holdfast(["runs", "show", "\u202ex\u009b", ...place, "--json"]);
  expect(refused.code).toBe(2);
  expect(JSON.parse(refused.stderr)).toMatchObject({ error: "usage" });
  for (const { stdout, stderr } of [stored, shown, refused])
    expect(stdout + stderr).not.toMatch(
      /[\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/,
    );
});

test("a run is shown, cancelled and read by six characters of its id, and fewer are refused", async () => {
  const id = await enqueued("elsewhere");
  expect((await json(["runs", "show", id.slice(-8)])).document.id).toBe(id);
  expect((await json(["runs", "logs", id.slice(-6)])).code).toBe(0);
  expect((await json(["runs", "cancel", id.slice(-8)])).code).toBe(0);
  expect((await json(["runs", "show", id.slice(-6)])).document.status).toBe("cancelled");
  const short = await terminal.holdfast(["runs", "show", id.slice(-5), ...place]);
  expect(short).toMatchObject({ code: 2, stderr: expect.stringMatching(/at least 6 characters/) });
  const several = await terminal.holdfast(["runs", "show", id.slice(0, 6), ...place]);
  expect(several).toMatchObject({ code: 1, stdout: "" });
  expect(several.stderr).toMatch(/several run ids: .*Give more of the id/);
  expect(several.stderr).toContain(id);
});

test("signal stores a value once, and reports a wrong call", async () => {
  const send = (...args: string[]) => json(["signal", "approved", "--key", "order-9", ...args]);
  expect((await send("--value", '{"by":"ada"}')).document).toEqual({
    name: "approved",
    key: "order-9",
    repeated: false,
  });
  const again = await json(
    ["signal", "approved", "--key", "order-9", "--value", "-"],
    '{"by":"ada"}',
  );
  expect(again).toMatchObject({ code: 0, document: { repeated: true } });
  const other = await send();
  expect(other).toMatchObject({ code: 1, document: undefined });
  expect(JSON.parse(other.stderr)).toMatchObject({
    error: "signal_conflict",
    message: expect.stringContaining("sent with another value before"),
  });
  const broken = await send("--value", "{by:ada}");
  expect(broken.code).toBe(2);
  expect(broken.stderr).toContain("--value is not JSON");
  const empty = await json(["signal", "approved", "--key", ""]);
  expect(empty.code).toBe(2);
});

test("runs list --waiting finds suspended runs; runs show prints why one waits, and its steps", async () => {
  const { document: stored } = await json(["enqueue", "approval", '{"order":"order-11"}']);
  const suspended = await until("the run is suspended", async () => {
    const { document } = await json(["runs", "list", "--waiting", "--job", "approval"]);
    return document.runs.length === 1 ? document.runs[0] : null;
  });
  expect(suspended).toMatchObject({ id: stored.id, status: "pending" });
  expect((await json(["runs", "list", "--waiting", "--job", "echo"])).document.runs).toEqual([]);
  const { stdout } = await terminal.holdfast(["runs", "show", stored.id, ...place]);
  expect(stdout).toMatch(
    /waits +for the signal approved with the key order-11, since \S+Z, until \S+Z/,
  );
  expect(stdout).toMatch(/ask +step +done .*\{"asked":"ada"\}/);
  expect(stdout).toMatch(/approved +signal +waiting .*approved with the key order-11, until/);
  expect((await json(["runs", "show", stored.id])).document.steps).toMatchObject([
    { name: "ask", state: "done", value: { asked: "ada" } },
    { name: "approved", state: "waiting", signal: "approved", key: "order-11" },
  ]);
  const wrong = await json(["runs", "list", "--waiting", "--status", "failed"]);
  expect(wrong.code).toBe(2);
  expect(wrong.stderr).toContain("leave out --status");
  await json(["signal", "approved", "--key", "order-11", "--value", "true"]);
  const ended = await until("the run has completed", async () => {
    const { document } = await json(["runs", "show", stored.id]);
    return document.status === "completed" ? document : null;
  });
  expect(ended.steps.at(-1)).toMatchObject({ name: "approved", state: "done", value: true });
});
