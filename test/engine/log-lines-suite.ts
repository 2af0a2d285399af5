// The log lines that the five systems require. Each situation is played, and the lines are compared with a golden file
// in the form of their documents: level, message, fields.

import { expect } from "vitest";
import { lineLogger } from "../../src/telemetry/log.js";
import { Door, type World, type WorldTest } from "./world.js";

/** The logged lines, with a placeholder for each value that differs from run to run. */
class Lines {
  readonly #lines: string[] = [];
  readonly logger = lineLogger(
    "debug",
    (line) => this.#lines.push(readable(line)),
    () => new Date(0),
  );

  text(): string {
    return `${this.#lines.join("\n")}\n`;
  }

  /** A heading in the golden file. */
  now(what: string): void {
    this.#lines.push(`# ${what}`);
  }
}

function readable(line: string): string {
  const { level, at: _, message, event, ...fields } = JSON.parse(line) as Record<string, string>;
  const shown = JSON.stringify(fields, (name, value: unknown) =>
    name === "stack" ? undefined : value,
  )
    .replace(/[\w.-]+:\d+:[\da-f]{8}-[\da-f-]{27}/g, "<instance>")
    .replace(/[\da-f]{8}-[\da-f]{4}-[\da-f-]{22}/g, "<run>")
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<time>")
    .replace(/"fence":\d+/g, '"fence":<fence>')
    .replace(/"database":"[^"]+"/g, '"database":"<database>"')
    .replace(/"connections":\d+/g, '"connections":<count>')
    .replace(/"(ranMs|lateMs|heldMs|waitedMs)":\d+/g, '"$1":<ms>');
  return `${level?.toUpperCase().padEnd(8)} ${event ?? "(handler)"}: ${message} ${shown}`;
}

const golden = (lines: Lines, name: string) =>
  expect(lines.text()).toMatchFileSnapshot(`./golden/${name}.txt`);

/** Keeps only what the document speaks of; the start of an instance is the same in all. */
function member(world: World, lines: Lines) {
  return world.member({ logger: lines.logger });
}

export function logLinesSuite(test: WorldTest): void {
  test("000: a trigger that was not due, or met a run, says why; an unreadable schedule runs nothing", async ({
    world,
  }) => {
    const lines = new Lines();
    const { holdfast, faults } = member(world, lines);
    const door = new Door();
    holdfast.job("refresh", { lease: "5m", run: () => door.opened });
    await holdfast.schedules.upsert("signals", { job: "refresh", every: "10m..15m" });
    lines.now("due: it runs");
    await holdfast.start();
    await world.clock.advance(2_000);
    lines.now("locked by another instance");
    await world.clock.until(holdfast.schedules.trigger("signals", { ifDue: true }));
    door.open();
    await world.clock.advance(2_000);
    lines.now("not time yet");
    await world.clock.until(holdfast.schedules.trigger("signals", { ifDue: true }));
    lines.now("schedule read error");
    faults.fail("schedules.states", "before");
    await expect(world.clock.until(holdfast.schedules.trigger("signals"))).rejects.toThrow();
    await golden(lines, "000-scheduler-lock");
  });

  test("001: a silent run is reclaimed, and its log says whether its lease or its timeout ran out", async ({
    world,
  }) => {
    const lines = new Lines();
    const frozen = world.member();
    const begun = new Door();
    frozen.holdfast.job("study", {
      lease: "30s",
      retry: { attempts: 1 },
      onLost: "fail",
      run: () => {
        begun.open();
        return new Promise(() => undefined);
      },
    });
    await frozen.holdfast.start();
    const { id } = await frozen.holdfast.enqueue("study", null);
    await world.clock.until(begun.opened);
    frozen.clock.pause();
    const { holdfast } = member(world, lines);
    lines.now("a worker falls silent");
    await holdfast.start();
    await world.ended(id);
    await golden(lines, "001-scheduled-runs");
    frozen.clock.resume();
  });

  test("002: locks that are acquired, refused, released, taken over", async ({ world }) => {
    const lines = new Lines();
    const [first, second] = [member(world, lines), member(world, lines)];
    lines.now("an instance starts");
    await first.holdfast.start({ scheduler: false, worker: false });
    lines.now("acquired, met by another instance, released");
    await world.clock.until(
      first.holdfast.lock("snapshot-job", { lease: "6m" }, async () => {
        await second.holdfast.lock("snapshot-job", { lease: "6m" }, () => undefined);
      }),
    );
    lines.now("its holder is frozen for longer than the lease");
    const door = new Door();
    const lost = first.holdfast.lock("snapshot-job", { lease: "6m" }, () => door.opened);
    lost.catch(() => undefined);
    await world.clock.advance(1_000);
    first.clock.pause();
    await world.clock.advance(6 * 60_000 + 1_000);
    await world.clock.until(second.holdfast.lock("snapshot-job", { lease: "6m" }, () => undefined));
    lines.now("and finds out");
    first.clock.resume();
    door.open();
    await expect(world.clock.until(lost)).rejects.toThrow();
    lines.now("locking is switched off");
    const off = world.member({ logger: lines.logger, locking: false });
    await off.holdfast.start({ scheduler: false, worker: false });
    await golden(lines, "002-distributed-locks");
  });

  test("003: claims won and lost, attempts and the reasons of retries", async ({ world }) => {
    const lines = new Lines();
    const members = [member(world, lines), member(world, lines)];
    for (const { holdfast } of members) {
      const report = holdfast.job("report", {
        retry: { attempts: 4, delay: "10s", factor: 2, max: "60s", jitter: 0 },
        run: (_, ctx) => {
          ctx.log.info({ instance: "amc-42", from: "2026-01-01T00:00:00" }, "parameters formatted");
          if (ctx.attempt === 1) throw new Error("read ECONNRESET");
        },
      });
      holdfast.schedule("weekly", report, { every: "1m" });
      await holdfast.start();
    }
    await world.clock.advance(59_000);
    for (const { faults } of members) faults.holdUp("schedules.write");
    await world.clock.advance(2_500);
    lines.now("two instances claim the same tick");
    // Both have decided it; that one writes before the other orders what the two of them say.
    for (const { faults } of members) {
      faults.deliver("schedules.write");
      await world.clock.advance(500);
    }
    lines.now("ten seconds later");
    await world.clock.advance(12_000);
    await golden(lines, "003-atomic-claim");
  });

  test("004: started, retried, partly done, one failed, exhausted: info, warn, error, critical", async ({
    world,
  }) => {
    const lines = new Lines();
    const { holdfast } = member(world, lines);
    holdfast.job("reconciliation", {
      retry: { attempts: 3, delay: "1s", factor: 2, max: "30s", jitter: 0 },
      run: async (
        input: { readonly failing: readonly string[]; readonly isDown: boolean },
        ctx,
      ) => {
        if (input.isDown)
          throw new Error("connect ECONNREFUSED postgres://app:s3cret@db:5432/main");
        for (const address of ["0xa", "0xb", "0xc"]) {
          const schedule = () => {
            if (input.failing.includes(address)) throw new Error(`no such address ${address}`);
          };
          await ctx.item(address, schedule, { onError: "record" });
        }
        const errors = input.failing.length;
        ctx.log.info({ scheduled: 3 - errors, errors }, "reconciliation scheduled");
      },
    });
    await holdfast.start();
    const play = async (what: string, failing: readonly string[], isDown = false) => {
      lines.now(what);
      const { id } = await holdfast.enqueue("reconciliation", { failing, isDown });
      await world.ended(id);
      await world.clock.rest();
    };
    await play("all addresses are scheduled", []);
    await play("some fail", ["0xb"]);
    await play("the database is away: retried, then exhausted", [], true);
    lines.now("stops with the server");
    await world.clock.until(holdfast.stop());
    await golden(lines, "004-reconciliation");
  });
}
