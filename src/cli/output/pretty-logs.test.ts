// How log lines look to people.

import picocolors from "picocolors";
import { expect, test } from "vitest";
import { logEvents } from "../../telemetry/log.js";
import { wantsColours } from "../shell.js";
import { prettyLogger } from "./pretty-logs.js";

const RUN = "0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55";

function lines(level: "debug" | "info" | "warn" = "info") {
  const written: string[] = [];
  const logger = prettyLogger({
    level,
    colours: picocolors.createColors(false),
    write: (line) => written.push(line),
    now: () => new Date(2030, 0, 31, 9, 5, 7),
  });
  return { written, logger, emit: logEvents(logger) };
}

test("a line says when, what, of which job, and of which run", () => {
  const { written, emit } = lines();
  const facts = { run: RUN, job: "send-mail", attempt: 1 };
  emit("run.completed", { ...facts, ranMs: 84 });
  emit("run.postponed", { ...facts, delayMs: 3_000 });
  const error = { code: "ECONNRESET", name: "Error", message: "the bank hung up\nfor good" };
  emit("run.retrying", { ...facts, attempt: 2, delayMs: 500, error });
  emit("run.failed", { ...facts, ranMs: 10, error, isPermanent: true });
  expect(written).toEqual([
    `09:05:07 ✓ send-mail      run completed: 84 ms ${RUN}`,
    `09:05:07 ↷ send-mail      run postponed by its handler: next try in 3 s ${RUN}`,
    `09:05:07 ↻ send-mail      attempt failed, the run will be retried: attempt 2, next try in 500 ms, ECONNRESET the bank hung up ${RUN}`,
    `09:05:07 ✗ send-mail      run failed: 10 ms, ECONNRESET the bank hung up ${RUN}`,
  ]);
});

test("lines below the level are not written", () => {
  const { written, logger, emit } = lines("warn");
  emit("run.completed", { run: RUN, job: "send-mail", attempt: 1, ranMs: 1 });
  logger.info({}, "hello");
  expect(written).toEqual([]);
  expect(logger.isLevelEnabled?.("info")).toBe(false);
  expect(logger.isLevelEnabled?.("error")).toBe(true);
});

test("lines of handlers show all their fields", () => {
  const { written, logger } = lines();
  const circle: Record<string, unknown> = {};
  circle.self = circle;
  logger.info({ page: 3, of: 5, note: null }, "writing");
  logger.warn({ circle }, "strange");
  logger.error({ error: new Error("lost") }, "sorry");
  logger.info("text alone" as never, undefined as never);
  expect(written).toEqual([
    "09:05:07 · writing: page=3, of=5",
    "09:05:07 ! strange: circle=[object Object]",
    "09:05:07 ✗ sorry: lost",
    "09:05:07 · text alone",
  ]);
});

test("nothing in a line steers the terminal or makes a second line", () => {
  const { written, logger } = lines();
  logger.info({ job: "a\u001b[31mb", x: "one\ntwo" }, "bell\u0007");
  expect(written).toEqual(["09:05:07 · a\uFFFD[31mb        bell\uFFFD: x=one two"]);
});

test("colours: NO_COLOR wins, then FORCE_COLOR, then whether it is a terminal", () => {
  expect(wantsColours({}, true)).toBe(true);
  expect(wantsColours({}, false)).toBe(false);
  expect(wantsColours({ TERM: "dumb" }, true)).toBe(false);
  expect(wantsColours({ FORCE_COLOR: "1" }, false)).toBe(true);
  expect(wantsColours({ FORCE_COLOR: "0" }, true)).toBe(false);
  expect(wantsColours({ NO_COLOR: "1", FORCE_COLOR: "1" }, true)).toBe(false);
});
