// Loggers of every kind that people bring: console, and a pino-like one with children that need `this`.

import { Console } from "node:console";
import { Writable } from "node:stream";
import { expect, test } from "vitest";
import { Bus } from "../../telemetry/bus.js";
import { runLog } from "./logs.js";

/** As pino is, where it matters: methods on a prototype, bindings of children, levels. */
class Pinoish {
  readonly lines: string[];
  readonly #bindings: object;
  readonly #levels: readonly string[];

  constructor(bindings: object, levels: readonly string[], lines: string[] = []) {
    this.#bindings = bindings;
    this.#levels = levels;
    this.lines = lines;
  }

  child(bindings: object): Pinoish {
    return new Pinoish({ ...this.#bindings, ...bindings }, this.#levels, this.lines);
  }

  isLevelEnabled(level: string): boolean {
    return this.#levels.includes(level);
  }

  #write(level: string, fields: object, message: string): void {
    if (this.isLevelEnabled(level))
      this.lines.push(JSON.stringify({ level, ...this.#bindings, ...fields, msg: message }));
  }

  debug(fields: object, message: string): void {
    this.#write("debug", fields, message);
  }
  info(fields: object, message: string): void {
    this.#write("info", fields, message);
  }
  warn(fields: object, message: string): void {
    this.#write("warn", fields, message);
  }
  error(fields: object, message: string): void {
    this.#write("error", fields, message);
  }
}

const now = () => new Date(0);

test("a pino-like child logger gets every line with its own bindings, and only those that it wants", () => {
  const logger = new Pinoish({ app: "shop" }, ["info", "warn", "error"]).child({ part: "jobs" });
  const { emit, listens } = new Bus({ logger, now });
  expect(listens("run.failed")).toBe(true);
  expect(listens("run.completed")).toBe(true);
  emit("run.completed", { run: "r", job: "mail", attempt: 1, ranMs: 5 });
  const kept: unknown[] = [];
  const log = runLog({ logger, fields: { run: "r" }, keep: (...line) => kept.push(line) });
  log.debug("not written, but kept");
  log.warn({ market: "eu" }, "slow");
  const { info } = log;
  info("taken off its object");
  expect(logger.lines.map((line) => JSON.parse(line))).toEqual([
    {
      level: "info",
      app: "shop",
      part: "jobs",
      event: "run.completed",
      run: "r",
      job: "mail",
      attempt: 1,
      ranMs: 5,
      msg: "run completed",
    },
    { level: "warn", app: "shop", part: "jobs", run: "r", market: "eu", msg: "slow" },
    { level: "info", app: "shop", part: "jobs", run: "r", msg: "taken off its object" },
  ]);
  expect(kept).toHaveLength(3);
});

test("console is a logger: the fields, then the words", () => {
  let text = "";
  const stream = new Writable({
    write(chunk, _, done) {
      text += chunk;
      done();
    },
  });
  const logger = new Console(stream, stream);
  const { emit } = new Bus({ logger, now });
  emit("store.recovered", { what: "poll" });
  runLog({ logger, fields: { run: "r" }, keep: () => undefined }).error(new Error("broken"), "no");
  expect(text).toContain("{ event: 'store.recovered', what: 'poll' } the database responds again");
  expect(text).toMatch(/run: 'r',\s+err: Error: broken/);
  expect(text.trimEnd()).toMatch(/no$/);
});
