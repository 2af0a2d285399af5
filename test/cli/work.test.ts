// Tests `start` and `dev`: their output, how they stop, when they reload.

import { existsSync } from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { freePort } from "../../scripts/postgres.mjs";
import { configText, ECHO_JOB, openTerminal, type Terminal } from "./terminal.js";

let terminal: Terminal;
beforeEach(() => {
  terminal = openTerminal();
});
afterEach(() => terminal.close());

const FIRST = (job: string) => `holdfast.enqueue("${job}", {}, { key: "first" }).catch(() => {});`;

/** Says "beat" all the time and obeys nobody. */
const STUBBORN = `
holdfast.job("stubborn", { async run(input, ctx) {
  for (;;) { ctx.log.info({}, "beat"); await pause(100); }
} });
${FIRST("stubborn")}`;

test("start works until SIGTERM, finishes what runs, and reports it", async () => {
  const slow = `holdfast.job("slow", { async run(input, ctx) {
    ctx.log.info({ job: "slow" }, "halfway"); await pause(300); return 1; } });`;
  terminal.write({ "holdfast.config.mjs": configText(`${slow}\n${FIRST("slow")}`) });
  const session = terminal.begin(["start"]);
  await session.line(/· instance started: .*jobs=slow, concurrency=10/);
  await session.line(/· slow +halfway/);
  session.child.kill("SIGTERM");
  await session.line(/Stopping: running runs have 25 s to end\./);
  await session.line(/✓ slow +run completed: .* ms [0-9a-f-]{36}$/);
  await session.line(/^1 finished, 0 handed back, 0 abandoned$/);
  expect(await session.ended).toMatchObject({ code: 0, stderr: "" });
  expect(existsSync(path.join(terminal.folder, "app.db"))).toBe(true);
});

test("with --json the lines are JSON on standard error, and the report is the document", async () => {
  terminal.write({ "holdfast.config.mjs": configText(`${ECHO_JOB}\n${FIRST("echo")}`) });
  const session = terminal.begin(["start", "--json"]);
  const line = JSON.parse(await session.line(/run\.completed/));
  expect(line).toMatchObject({ level: "info", event: "run.completed", job: "echo", attempt: 1 });
  session.child.kill("SIGINT");
  const { code, stdout, stderr } = await session.ended;
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toEqual({ finished: 0, handedBack: 0, abandoned: 0 });
  for (const each of stderr.trim().split("\n")) expect(JSON.parse(each)).toHaveProperty("event");
});

test("HOLDFAST_LOG_FORMAT and HOLDFAST_LOG_LEVEL decide about the lines", async () => {
  const talks = `holdfast.job("echo", { run: (input, ctx) => ctx.log.debug({ at: 1 }, "looking") });`;
  terminal.write({ "holdfast.config.mjs": configText(`${talks}\n${FIRST("echo")}`) });
  const env = { HOLDFAST_LOG_FORMAT: "json", HOLDFAST_LOG_LEVEL: "debug" };
  const session = terminal.begin(["start"], { env });
  expect(JSON.parse(await session.line(/run\.started/))).toMatchObject({ level: "info" });
  expect(JSON.parse(await session.line(/looking/))).toMatchObject({ level: "debug" });
});

test("colours are for terminals, unless asked for", async () => {
  terminal.write({ "holdfast.config.mjs": configText(ECHO_JOB) });
  const started = async (env: Record<string, string>) => {
    const session = terminal.begin(["start"], { env });
    const line = await session.line(/instance started/);
    session.child.kill("SIGTERM");
    await session.ended;
    return line.includes("\u001b[");
  };
  expect(await started({})).toBe(false);
  expect(await started({ FORCE_COLOR: "1" })).toBe(true);
  expect(await started({ FORCE_COLOR: "1", NO_COLOR: "1" })).toBe(false);
});

test("a repeated signal within a second is the same one; a later one leaves at once", async () => {
  terminal.write({ "holdfast.config.mjs": configText(STUBBORN) });
  const session = terminal.begin(["start"]);
  await session.line(/beat/);
  session.child.kill("SIGINT");
  await session.line(/Stopping/);
  session.child.kill("SIGINT");
  // Fifteen beats of 100 ms: it is still there, and more than a second has passed.
  for (let beat = 0; beat < 15; beat += 1) await session.line(/beat/);
  session.child.kill("SIGINT");
  expect(await session.ended).toMatchObject({ code: 130 });
});

test("a second SIGTERM leaves with its own exit code", async () => {
  terminal.write({ "holdfast.config.mjs": configText(STUBBORN) });
  const session = terminal.begin(["start"]);
  await session.line(/beat/);
  session.child.kill("SIGTERM");
  for (let beat = 0; beat < 15; beat += 1) await session.line(/beat/);
  session.child.kill("SIGTERM");
  expect(await session.ended).toMatchObject({ code: 143 });
});

test("while a start waits for its database /healthz answers, and other calls wait with it", async () => {
  terminal.write({ "holdfast.config.mjs": configText(ECHO_JOB, "{}") });
  const [port, closed] = [await freePort(), await freePort()];
  const env = { HOLDFAST_DATABASE_URL: `postgres://127.0.0.1:${closed}/app` };
  const session = terminal.begin(["start", "--port", String(port)], { env });
  await session.line(/the start waits for it/);
  const statusOf = async (route: string) =>
    (await fetch(`http://127.0.0.1:${port}${route}`).catch(() => null))?.status;
  const ready = statusOf("/readyz");
  expect(await statusOf("/healthz")).toBe(200);
  session.child.kill("SIGTERM");
  expect(await session.ended).toMatchObject({ code: 0 });
  expect(await ready).not.toBe(200);
});

test("an instance without a worker stays, and executes nothing", async () => {
  terminal.write({ "holdfast.config.mjs": configText(`${ECHO_JOB}\n${FIRST("echo")}`) });
  const session = terminal.begin(["start", "--no-worker"]);
  for (let isStored = false; !isStored; ) {
    const { code, stdout } = await terminal.holdfast(["runs", "list", "--json"]);
    isStored = code === 0 && JSON.parse(stdout).runs.length === 1;
  }
  session.child.kill("SIGTERM");
  const { code, stdout } = await session.ended;
  expect(code).toBe(0);
  expect(stdout).toMatch(/0 finished, 0 handed back, 0 abandoned/);
  expect(stdout).not.toMatch(/run completed/);
});

test("start works only on the queues it is given", async () => {
  const jobs = `
    holdfast.job("mail", { queue: "mail", run: () => 1 });
    holdfast.job("other", { run: () => 1 });
    ${FIRST("other")} ${FIRST("mail")}`;
  terminal.write({ "holdfast.config.mjs": configText(jobs) });
  const session = terminal.begin(["start", "--queues", "mail,urgent", "--concurrency", "3"]);
  await session.line(/concurrency=3/);
  await session.line(/✓ mail/);
  session.child.kill("SIGTERM");
  expect((await session.ended).stdout).not.toMatch(/other +run completed/);
});

test("paths in the code begin at the configuration file, those of a flag at the folder", async () => {
  terminal.write({
    "sub/holdfast.config.mjs": configText(ECHO_JOB, '{ database: "sqlite:in-code.db" }'),
  });
  const started = async (...flags: string[]) => {
    const session = terminal.begin(["start", "sub/holdfast.config.mjs", ...flags]);
    await session.line(/instance started/);
    session.child.kill("SIGTERM");
    await session.ended;
  };
  await started();
  await started("--database", "sqlite:in-flag.db");
  const files = ["sub/in-code.db", "in-flag.db", "in-code.db", "sub/in-flag.db"];
  expect(files.map((file) => existsSync(path.join(terminal.folder, file)))).toEqual([
    true,
    true,
    false,
    false,
  ]);
});

test("the flag wins over the code, the code over the environment", async () => {
  const env = { HOLDFAST_DATABASE_URL: "sqlite:environment.db" };
  const database = async (options: string, ...flags: string[]) => {
    terminal.write({ "holdfast.config.mjs": configText(ECHO_JOB, options) });
    const session = terminal.begin(["start", ...flags], { env });
    const line = await session.line(/instance started/);
    session.child.kill("SIGTERM");
    await session.ended;
    return /database=\S*\/(\S+)\.db/.exec(line)?.[1];
  };
  expect(await database("{}")).toBe("environment");
  expect(await database('{ database: "sqlite:code.db" }')).toBe("code");
  expect(await database('{ database: "sqlite:code.db" }', "--database", "sqlite:flag.db")).toBe(
    "flag",
  );
});

test("a TypeScript configuration file is loaded", async () => {
  terminal.write({
    "jobs.ts": 'export const name: string = "typed";\n',
    "holdfast.config.ts": `import { Holdfast } from "holdfast";
      import { name } from "./jobs.js";
      const holdfast: Holdfast = new Holdfast({ database: "sqlite:app.db" });
      holdfast.job(name, { run: () => 1 });
      export default holdfast;`,
  });
  const session = terminal.begin(["start"]);
  await session.line(/jobs=typed/);
});

test("dev ignores a database beyond this machine, and says so", async () => {
  terminal.write({ "holdfast.config.mjs": configText(ECHO_JOB, "{}") });
  const env = { HOLDFAST_DATABASE_URL: "postgres://app:hunter2@db.example.com/app" };
  const session = terminal.begin(["dev"], { env });
  await session.line(
    /Ignored: HOLDFAST_DATABASE_URL \(postgres:\/\/app:\*\*\*@db\.example\.com\/app\) is on another machine/,
  );
  await session.line(/instance started: .*database=sqlite:.*\.holdfast\/holdfast\.db/);
});

test("dev reloads when a source file changes, and waits while it is broken", async () => {
  const greeting = (text: string) =>
    configText(
      `import { hello } from "./hello.mjs";\nholdfast.job(hello, { run: () => 1 });${text}`,
    );
  terminal.write({
    "holdfast.config.mjs": greeting(""),
    "hello.mjs": 'export const hello = "one";\n',
  });
  const session = terminal.begin(["dev"]);
  await session.line(/jobs=one/);
  terminal.write({ "hello.mjs": 'export const hello = "two";\n' });
  await session.line(/hello\.mjs changed: reloading\./);
  await session.line(/0 finished, 0 handed back, 0 abandoned/);
  await session.line(/jobs=two/);
  terminal.write({ "hello.mjs": "export const hello =;\n" });
  await session.line(/could not be loaded/);
  await session.line(/exited with code 3; waiting for a change/);
  terminal.write({ "hello.mjs": 'export const hello = "three";\n' });
  await session.line(/jobs=three/);
  session.child.kill("SIGTERM");
  await session.line(/0 finished, 0 handed back, 0 abandoned/);
  expect(await session.ended).toMatchObject({ code: 0 });
});

test("the working half of dev stops when the watching half is killed", async () => {
  terminal.write({ "holdfast.config.mjs": configText(ECHO_JOB) });
  const session = terminal.begin(["dev"]);
  await session.line(/instance started/);
  session.child.kill("SIGKILL");
  await session.line(/0 finished, 0 handed back, 0 abandoned/);
  await session.ended;
});

test("dev leaves at once on a second signal, with its working half", async () => {
  terminal.write({ "holdfast.config.mjs": configText(STUBBORN) });
  const session = terminal.begin(["dev"]);
  await session.line(/beat/);
  session.child.kill("SIGTERM");
  for (let beat = 0; beat < 15; beat += 1) await session.line(/beat/);
  session.child.kill("SIGTERM");
  expect(await session.ended).toMatchObject({ code: 143 });
});

test("an instance whose output pipe is closed stops gracefully", async () => {
  const chatty = `holdfast.job("chatty", { async run(input, ctx) {
    for (;;) { ctx.log.info({}, "beat"); await pause(50, null, { signal: ctx.signal }); } } });`;
  terminal.write({ "holdfast.config.mjs": configText(`${chatty}\n${FIRST("chatty")}`) });
  const session = terminal.begin(["dev", "--no-reload"]);
  await session.line(/beat/);
  session.child.stdout?.destroy();
  expect(await session.ended).toMatchObject({ code: 0 });
});

test("tick fires and executes due work, reports it, and ends", async () => {
  const text = `${ECHO_JOB}
holdfast.schedule("often", "echo", { every: "1h..2h", input: { a: 1 } });`;
  terminal.write({ "holdfast.config.mjs": configText(text) });
  const first = await terminal.holdfast(["tick", "--json"]);
  expect(first.code).toBe(0);
  expect(JSON.parse(first.stdout)).toMatchObject({
    ok: true,
    fired: [{ schedule: "often" }],
    executed: 1,
  });
  const again = await terminal.holdfast(["tick"]);
  expect(again.stdout).toMatch(/^0 fired, 0 not fired, 0 executed; next at /m);
  const wrong = await terminal.holdfast(["tick", "--limit", "-1"]);
  expect(wrong.code).toBe(2);
});
