// Lines on loggers that people have: the real pino, Fastify's, console, and those with levels of their own.

import { Writable } from "node:stream";
import { Logger as Powertools } from "@aws-lambda-powertools/logger";
import Fastify from "fastify";
import { pino } from "pino";
import { expect, test, vi } from "vitest";
import winston from "winston";
import { fieldsFirst, LentLogger, type Logger, lineLogger, logEvents, logs } from "./log.js";

const FAILED = {
  run: "r",
  job: "mail",
  attempt: 3,
  ranMs: 5,
  isPermanent: false,
  error: { code: "ERROR", name: "Error", message: "no route to postgres://app:s3cret@db/main" },
};

function sink(): { readonly lines: () => Record<string, unknown>[]; readonly stream: Writable } {
  let text = "";
  const stream = new Writable({
    write(chunk, _, done) {
      text += chunk;
      done();
    },
  });
  const lines = () =>
    text
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { lines, stream };
}

test("pino writes critical events as fatal, each line with its fields, and only enabled levels", () => {
  const { lines, stream } = sink();
  const logger = pino({ base: null, timestamp: false, level: "info" }, stream);
  const emit = logEvents(logger);
  emit("run.started", { run: "r", job: "mail", attempt: 1 });
  emit("run.failed", FAILED);
  expect(lines()).toEqual([
    { level: 30, event: "run.started", run: "r", job: "mail", attempt: 1, msg: "run started" },
    {
      ...{ level: 60, event: "run.failed", ...FAILED, msg: "run failed" },
      error: { ...FAILED.error, message: "no route to postgres://app:***@db/main" },
    },
  ]);
  logger.level = "warn";
  const isLogged = logs(logger);
  expect([isLogged("run.started"), isLogged("run.retrying"), isLogged("run.failed")]).toEqual([
    false,
    true,
    true,
  ]);
  logger.level = "silent";
  expect(isLogged("run.failed")).toBe(false);
});

test("winston takes every line with its message, its level and its fields", () => {
  const { lines, stream } = sink();
  const transports = [new winston.transports.Stream({ stream })];
  const logger = fieldsFirst(winston.createLogger({ format: winston.format.json(), transports }));
  const emit = logEvents(logger);
  emit("run.completed", { run: "r", job: "mail", attempt: 1, ranMs: 5 });
  emit("run.failed", FAILED);
  expect(lines()).toMatchObject([
    { level: "info", message: "run completed", event: "run.completed", run: "r", ranMs: 5 },
    { level: "error", severity: "critical", message: "run failed", event: "run.failed" },
  ]);
  expect(logs(logger)("run.started")).toBe(true);
});

test("the logger of AWS Powertools gets every line, critical ones as critical", () => {
  const said: Record<string, unknown>[] = [];
  const write = (line: string) => void said.push(JSON.parse(line));
  for (const method of ["info", "warn", "error"] as const)
    vi.spyOn(console, method).mockImplementation(write as never);
  vi.stubEnv("POWERTOOLS_DEV", "true");
  try {
    const emit = logEvents(fieldsFirst(new Powertools({ serviceName: "jobs" })));
    emit("run.completed", { run: "r", job: "mail", attempt: 1, ranMs: 5 });
    emit("run.failed", FAILED);
  } finally {
    vi.restoreAllMocks();
    vi.unstubAllEnvs();
  }
  expect(said).toMatchObject([
    { level: "INFO", message: "run completed", event: "run.completed", run: "r", ranMs: 5 },
    { level: "CRITICAL", message: "run failed", event: "run.failed", job: "mail" },
  ]);
});

test("Fastify's logger and its children take every line", async () => {
  const { lines, stream } = sink();
  const app = Fastify({ logger: { level: "info", stream } });
  const emit = logEvents(app.log.child({ part: "jobs" }) as Logger);
  emit("lock.refused", { lock: "import", holder: "a" });
  emit("schedule.broken", { schedule: "nightly", error: "no such zone" });
  expect(lines()).toMatchObject([
    {
      level: 30,
      part: "jobs",
      event: "lock.refused",
      msg: "lock is held by another, nothing was done",
    },
    { level: 60, part: "jobs", event: "schedule.broken", error: "no such zone" },
  ]);
  await app.close();
});

test("a logger with a level critical gets it there; one with neither gets an error that says so", () => {
  const said: [string, object][] = [];
  const at = (level: string) => (fields: object) => void said.push([level, fields]);
  const plain = { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  logEvents({ ...plain, critical: at("critical"), fatal: at("fatal") })("run.failed", FAILED);
  logEvents(plain)("run.failed", FAILED);
  expect(said.map(([level]) => level)).toEqual(["critical", "error"]);
  expect(said[0]?.[1]).not.toHaveProperty("level");
  expect(said[1]?.[1]).toMatchObject({ level: "critical", event: "run.failed" });
});

test("a lent logger passes critical events on at the level of its new owner", () => {
  const { lines, stream } = sink();
  const lent = new LentLogger(
    lineLogger(
      "silent",
      () => undefined,
      () => new Date(0),
    ),
  );
  lent.lend(pino({ base: null, timestamp: false }, stream));
  logEvents(lent)("run.failed", FAILED);
  expect(lines()).toMatchObject([{ level: 60, event: "run.failed" }]);
});

test("the library's own logger hides members named as secrets, at any depth", () => {
  const written: string[] = [];
  const logger = lineLogger(
    "info",
    (line) => written.push(line),
    () => new Date(0),
  );
  logger.info({ user: "ada", password: "s3cret", headers: { authorization: "x" } }, "signed in");
  expect(JSON.parse(written[0] as string)).toEqual({
    level: "info",
    at: "1970-01-01T00:00:00.000Z",
    message: "signed in",
    user: "ada",
    password: "***",
    headers: { authorization: "***" },
  });
});

test("a failed run is an error, and critical only where every one of several attempts has failed", () => {
  const levels: string[] = [];
  const at = (level: string) => () => void levels.push(level);
  const emit = logEvents({
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    critical: at("critical"),
  });
  emit("run.failed", { ...FAILED, attempt: 1, isPermanent: true });
  emit("run.failed", { ...FAILED, attempt: 3, isPermanent: true });
  emit("run.failed", { ...FAILED, attempt: 1, isPermanent: false });
  emit("run.failed", { ...FAILED, attempt: 3, isPermanent: false });
  emit("tick.lost", { schedule: "nightly" });
  expect(levels).toEqual(["error", "error", "error", "critical", "debug"]);
});
