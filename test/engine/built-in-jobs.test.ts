// The jobs `shell` and `http`: off unless programs and origins are configured, and an input only selects among those.
// Real programs and a real server.

import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { Holdfast } from "../../src/holdfast.js";
import type { HoldfastOptions } from "../../src/instance/config.js";
import { until } from "../support/until.js";

const open: Holdfast[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.stop({ grace: "1s" })));
});

function instance(options: HoldfastOptions): Holdfast {
  const holdfast = new Holdfast({
    database: "sqlite::memory:",
    logger: { debug() {}, info() {}, warn() {}, error() {} },
    ...options,
  });
  open.push(holdfast);
  return holdfast;
}

async function ended(holdfast: Holdfast, job: string, input: unknown) {
  await holdfast.start({ scheduler: false });
  const { id } = await holdfast.enqueue(job, input);
  return holdfast.runs.wait(id, { timeout: "30s" });
}

/** A file that nobody may run. */
const THIS_FILE = fileURLToPath(import.meta.url);
const COMMANDS = {
  greet: ["sh", "-c", "echo hello; echo careful >&2"],
  break: ["sh", "-c", "echo 'disk full'; exit 7"],
  missing: ["no-such-program"],
  forbidden: [THIS_FILE],
  slow: { command: ["sleep", "60"], timeout: "100ms" },
  told: { command: ["sh", "-c", 'echo "$GREETING"; pwd'], env: { GREETING: "hi" }, folder: "/" },
  endless: ["sh", "-c", "trap 'echo tidy; exit 1' TERM; echo here; while :; do sleep 0.05; done"],
} as const;

test("shell runs a program by its name, and keeps its output", async () => {
  const holdfast = instance({ shell: { commands: COMMANDS } });
  const run = await ended(holdfast, "shell", { command: "greet" });
  expect(run).toMatchObject({ status: "completed", result: { exitCode: 0 } });
  const { lines } = await holdfast.runs.logs(run.id);
  expect(lines.map(({ message }) => message).sort()).toEqual(["careful", "hello"]);
  expect(await ended(holdfast, "shell", { command: "told" })).toMatchObject({
    result: { output: "hi\n/" },
  });
});

test("a program gets the environment that programs need, the configured additions, and no secret of this process", async () => {
  const variables = {
    HOLDFAST_ADMIN_SECRET: "an-admin-secret-of-this-process",
    HOLDFAST_DATABASE_URL: "sqlite::memory:",
    STRIPE_KEY: "a-key-of-the-application",
    PGHOST: "db.internal",
  };
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
  const shell = {
    commands: {
      show: { command: ["env"], env: { GREETING: "hi" }, inheritEnv: ["PGHOST", "NOT_SET"] },
    },
  };
  const run = await ended(instance({ shell }), "shell", { command: "show" });
  const { lines } = await (open[0] as Holdfast).runs.logs(run.id);
  const shown = lines.map(({ message }) => message).sort();
  expect(shown).toContain(`PATH=${process.env.PATH}`);
  expect(shown).toContain("GREETING=hi");
  expect(shown).toContain("PGHOST=db.internal");
  const names = shown.map((line) => line.split("=", 1)[0]);
  for (const name of ["HOLDFAST_ADMIN_SECRET", "HOLDFAST_DATABASE_URL", "STRIPE_KEY", "NOT_SET"])
    expect(names).not.toContain(name);
  vi.unstubAllEnvs();
});

test("a program that fails, lasts too long or does not exist fails the run, once", async () => {
  const holdfast = instance({ shell: { commands: COMMANDS } });
  for (const [command, code, message] of [
    ["break", "EXIT_7", "The program ended with exit code 7.\ndisk full"],
    ["slow", "TIMEOUT", "The program was ended: it took longer than its time limit."],
    [
      "missing",
      "NOT_STARTED",
      "no-such-program could not be started: there is no such program or folder.",
    ],
    ["forbidden", "NOT_STARTED", `${THIS_FILE} could not be started: this user may not run it.`],
  ]) {
    const run = await ended(holdfast, "shell", { command });
    expect(run).toMatchObject({ status: "failed", attempt: 1, error: { code, message } });
  }
});

test("a program is retried if its owner allows it", async () => {
  const retry = { attempts: 2, delay: "1ms" } as const;
  const holdfast = instance({ shell: { commands: COMMANDS, retry } });
  expect(await ended(holdfast, "shell", { command: "break" })).toMatchObject({ attempt: 2 });
});

test("a cancelled run ends its program", async () => {
  const holdfast = instance({ shell: { commands: COMMANDS }, poll: "50ms" });
  await holdfast.start({ scheduler: false });
  const { id } = await holdfast.enqueue("shell", { command: "endless" });
  await until("it has begun", async () => (await holdfast.runs.logs(id)).lines.length > 0);
  await holdfast.runs.cancel(id);
  expect(await holdfast.runs.wait(id, { timeout: "30s" })).toMatchObject({ status: "cancelled" });
  const { lines } = await holdfast.runs.logs(id);
  expect(lines.map(({ message }) => message)).toContain("tidy");
});

test("an input selects by name and can do nothing else", async () => {
  const holdfast = instance({ shell: { commands: COMMANDS } });
  const refusals: readonly [unknown, RegExp][] = [
    [
      { command: "gret" },
      /input\.command.*must be one of the commands that the configuration lists: greet, break, .*did you mean greet\?/,
    ],
    [{ command: ["rm", "-rf", "/"] }, /must be one of the commands/],
    [{ command: "constructor" }, /must be one of the commands/],
    [{ command: "greet", args: ["--all"] }, /input\.args.*is not known/],
    ["greet; rm -rf /", /must be an object with command/],
    [null, /must be an object with command/],
  ];
  for (const [input, message] of refusals)
    await expect(holdfast.enqueue("shell", input)).rejects.toMatchObject({
      code: "INPUT_INVALID",
      message: expect.stringMatching(message),
    });
  await expect(
    holdfast.schedules.upsert("x", { job: "shell", cron: "@daily", input: { command: "gret" } }),
  ).rejects.toMatchObject({ code: "INPUT_INVALID" });
});

test("a run that an instance without the list has stored is refused when it is executed", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "holdfast-built-in-"));
  const database = `sqlite:${path.join(folder, "app.db")}`;
  const holdfast = instance({ database, shell: { commands: COMMANDS } });
  await holdfast.start({ scheduler: false });
  const other = instance({ database });
  const { id } = await other.enqueue("shell", { command: "evil" });
  expect(await other.runs.wait(id, { timeout: "30s" })).toMatchObject({
    status: "failed",
    attempt: 1,
    error: { code: "INPUT_INVALID", message: expect.stringMatching(/lists: greet, break/) },
  });
  await Promise.all(open.splice(0).map((each) => each.stop()));
  rmSync(folder, { recursive: true });
});

test("both are off unless they are configured, and say how to switch them on", async () => {
  const holdfast = instance({});
  await expect(holdfast.enqueue("shell", { command: "greet" })).rejects.toMatchObject({
    code: "JOB_UNKNOWN",
    message: expect.stringMatching(
      /It is off: list its programs, for example new Holdfast\(\{ shell:/,
    ),
  });
  await expect(holdfast.enqueue("http", {})).rejects.toThrow(/It is off: list its origins/);
});

test("every wrong value of both is named at once", () => {
  const make = () =>
    new Holdfast({
      shell: {
        commands: {
          a: "pg_dump app" as never,
          b: [],
          c: { command: ["x"], timeout: "soon" as never },
        },
        retri: 3,
      } as never,
      http: {
        origins: {
          d: "https://api.example.com/path",
          e: "ftp://files.example.com",
          f: { url: "http://127.0.0.1:9000" },
          g: { url: "https://api.example.com", methods: ["TRACE"] },
        },
      },
    });
  expect(make).toThrow(
    /shell\.commands\.a: must be a program and its arguments.*A text would need a shell/,
  );
  for (const part of [
    /shell\.commands\.b\.command: must be/,
    /shell\.commands\.c\.timeout: must be a duration/,
    /shell\.retri: is not known\. Did you mean "retry"\?/,
    /http\.origins\.d\.url: must be an origin/,
    /http\.origins\.e: cannot be used: ftp: is neither/,
    /http\.origins\.f: cannot be used: 127\.0\.0\.1 is .*allowPrivateNetwork: true would allow it/,
    /http\.origins\.g\.methods: must be a list/,
  ])
    expect(make).toThrow(part);
});

let server: Server;
let url: string;
const asked: { method: string; url: string; headers: Record<string, unknown>; body: string }[] = [];
beforeAll(async () => {
  server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      asked.push({
        method: request.method ?? "",
        url: request.url ?? "",
        headers: request.headers,
        body,
      });
      const [, status = "200"] = /status=(\d+)/.exec(request.url ?? "") ?? [];
      if (status === "302") response.setHeader("location", "/elsewhere");
      if (status === "429" && asked.filter((each) => each.url === request.url).length > 1)
        response.statusCode = 200;
      else response.statusCode = Number(status);
      if (status === "429") response.setHeader("retry-after", "0");
      const { authorization, "x-api-key": apiKey } = request.headers;
      const echo = JSON.stringify({ authorization, apiKey, far: "y".repeat(70_000) });
      if (request.url?.includes("echo")) response.end(echo);
      else response.end(request.url?.includes("big") ? "x".repeat(200_000) : '{"ok":true}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as { port: number }).port}`;
});
afterAll(() => server.close());

const asking = () =>
  instance({
    http: {
      origins: {
        api: {
          url,
          allowPrivateNetwork: true,
          headers: { authorization: "Bearer hunter2", "x-api-key": 'quoted"key-1' },
        },
        read: { url, allowPrivateNetwork: true, methods: ["GET"] },
      },
      retry: { attempts: 2, delay: "1ms" },
    },
  });

test("http sends one request to an origin by its name, and keeps status and body", async () => {
  asked.length = 0;
  const input = { origin: "api", path: "/refresh?all=1", body: { market: "eu" } };
  const run = await ended(asking(), "http", input);
  expect(run).toMatchObject({
    status: "completed",
    result: { status: 200, body: { ok: true }, isCut: false },
  });
  expect(asked).toMatchObject([
    {
      method: "POST",
      url: "/refresh?all=1",
      body: '{"market":"eu"}',
      headers: { authorization: "Bearer hunter2", "idempotency-key": run.id },
    },
  ]);
  expect(JSON.stringify(run)).not.toContain("hunter2");
});

test("an origin that echoes its request shows no header of the configuration", async () => {
  const holdfast = asking();
  const echoed = await ended(holdfast, "http", { origin: "api", path: "/echo" });
  expect(echoed).toMatchObject({ status: "completed", result: { status: 200, isCut: true } });
  const refused = await ended(holdfast, "http", { origin: "api", path: "/echo?status=400" });
  expect(refused).toMatchObject({ status: "failed", error: { code: "HTTP_400" } });
  for (const run of [echoed, refused]) {
    expect(JSON.stringify(run)).toContain("***");
    expect(JSON.stringify(run)).not.toMatch(/hunter2|quoted/);
  }
});

test("a long answer is cut, and says so", async () => {
  const run = await ended(asking(), "http", { origin: "api", path: "/big" });
  expect(run.result).toMatchObject({ status: 200, isCut: true });
  expect((run.result as { body: string }).body).toHaveLength(64 * 1024);
});

test("a status decides: busy is tried again, a refusal and a redirect are not", async () => {
  const holdfast = asking();
  const statusOf = async (path: string) => ended(holdfast, "http", { origin: "api", path });
  expect(await statusOf("/?status=429")).toMatchObject({ status: "completed", attempt: 2 });
  expect(await statusOf("/?status=503")).toMatchObject({
    status: "failed",
    attempt: 2,
    error: { code: "HTTP_503", message: 'Status 503: {"ok":true}' },
  });
  expect(await statusOf("/?status=404")).toMatchObject({ status: "failed", attempt: 1 });
  asked.length = 0;
  expect(await statusOf("/?status=302")).toMatchObject({
    status: "failed",
    attempt: 1,
    error: { code: "HTTP_302", message: "Status 302: redirects are not followed." },
  });
  expect(asked).toHaveLength(1);
});

test("no input leads a request to another place", async () => {
  const holdfast = asking();
  const refusals: readonly [unknown, RegExp][] = [
    [
      { origin: "https://evil.example" },
      /must be one of the origins that the configuration lists: api, read/,
    ],
    [{ origin: "api", url: "https://evil.example" }, /input\.url.*is not known/],
    [{ origin: "api", headers: { authorization: "x" } }, /input\.headers.*is not known/],
    ...[
      "//evil.example/x",
      "/\\evil.example",
      "https://evil.example",
      "x",
      "/a b",
      "/#x",
      "\\\\evil",
    ].map((path): [unknown, RegExp] => [{ origin: "api", path }, /input\.path.*must be a path/]),
  ];
  for (const [input, message] of refusals)
    await expect(holdfast.enqueue("http", input)).rejects.toThrow(message);
  const wrong = await ended(holdfast, "http", { origin: "read", path: "/", method: "DELETE" });
  expect(wrong).toMatchObject({
    status: "failed",
    error: { message: "input.method must be one of GET, which this origin allows." },
  });
});

test("the stored stack of a handler that throws ends at the handler", async () => {
  const holdfast = instance({});
  async function ownHandler(): Promise<void> {
    await Promise.resolve();
    throw new Error("no route");
  }
  holdfast.job("breaks", { retry: { attempts: 1 }, run: ownHandler });
  const run = await ended(holdfast, "breaks", null);
  const frames = (run.error as { stack: string }).stack.split("\n").slice(1);
  expect(frames.at(-1)).toContain("ownHandler");
  expect(frames.join()).not.toMatch(/\/src\/|node:internal/);
});
