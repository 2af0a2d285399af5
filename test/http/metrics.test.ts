// /metrics: scraped over HTTP, read by a parser that is not ours, and by Prometheus's own tool.

import parsePrometheusTextFormat from "parse-prometheus-text-format";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { PermanentError } from "../../src/index.js";
import { METRICS } from "../../src/telemetry/metric-names.js";
import { hasTool, samplesOf, tool } from "../support/prometheus.js";
import { DATABASES, type House, newHouse, SECRETS } from "./house.js";

describe.each(DATABASES)("metrics on %s", (database) => {
  let house: House;

  beforeEach(async () => {
    house = await newHouse(database, { options: { app: "shop", release: "1.2.3" } });
    house.holdfast.job("study", {
      run: (input) => {
        if (input !== null) throw new PermanentError(`no market ${input}`);
      },
    });
  });
  afterEach(() => house.end());

  const scrape = (headers: Readonly<Record<string, string>> = {}) =>
    house.ask("GET", "/metrics", { secret: SECRETS.read, headers });

  test("a scrape has runs by job, schedule and outcome, with durations and delays", async () => {
    await house.holdfast.schedules.upsert("nightly", { job: "study", every: "1h", input: null });
    for (const input of [null, null, "xx"]) await house.holdfast.enqueue("study", input);
    await house.holdfast.schedules.trigger("nightly");
    await house.holdfast.tick({ limit: 10 });
    const { status, text, headers } = await scrape();
    expect(status).toBe(200);
    expect(headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    const runs = samplesOf(text, "holdfast_runs_total");
    expect(runs).toHaveLength(3);
    expect(runs).toEqual(
      expect.arrayContaining([
        { job: "study", schedule: "", outcome: "completed", value: 2 },
        { job: "study", schedule: "", outcome: "failed", value: 1 },
        { job: "study", schedule: "nightly", outcome: "completed", value: 1 },
      ]),
    );
    for (const name of ["holdfast_run_duration_seconds", "holdfast_run_delay_seconds"])
      expect(samplesOf(text, `${name}_count`)).toEqual([{ job: "study", value: 4 }]);
    expect(samplesOf(text, "holdfast_claimed_runs_total")).toEqual([{ value: 4 }]);
    expect(samplesOf(text, "holdfast_database_up")).toEqual([{ value: 1 }]);
    expect(samplesOf(text, "holdfast_info")[0]).toMatchObject({
      instance: house.holdfast.instanceId,
      engine: database,
      app: "shop",
      release: "1.2.3",
    });
    // Over all instances; what was made by hand counts among the runs, not for the ratio.
    expect(samplesOf(text, "holdfast_runs_last_day")).toEqual(
      expect.arrayContaining([
        { job: "study", outcome: "completed", value: 3 },
        { job: "study", outcome: "failed", value: 1 },
      ]),
    );
    const [ratio] = samplesOf(text, "holdfast_success_ratio");
    expect(ratio?.value).toBeCloseTo(2 / 3);
  });

  test("depth, schedules and instances are the database's, the same from every instance", async () => {
    for (const input of [null, null]) await house.holdfast.enqueue("study", input);
    await house.holdfast.schedules.upsert("nightly", { job: "study", every: "1h", input: null });
    await house.holdfast.schedules.pause("nightly");
    const other = house.another();
    try {
      const theirs = await other.metrics();
      const { text } = await scrape();
      for (const told of [text, theirs]) {
        const depth = samplesOf(told, "holdfast_queue_depth");
        expect(depth.find(({ state }) => state === "ready")?.value).toBe(2);
        const schedules = samplesOf(told, "holdfast_schedules");
        expect(schedules.map(({ status, value }) => [status, value])).toEqual([
          ["active", 0],
          ["paused", 1],
          ["broken", 0],
          ["ended", 0],
        ]);
      }
    } finally {
      await other.stop();
    }
  });

  test("locks: got, refused, how long they were waited for and held", async () => {
    await house.holdfast.lock("import", { lease: "1m" }, async () => {
      await house.holdfast.lock("import", { lease: "1m" }, () => undefined);
      const { text } = await scrape();
      expect(samplesOf(text, "holdfast_locks_held")).toEqual([{ value: 1 }]);
    });
    const { text } = await scrape();
    expect(samplesOf(text, "holdfast_locks_total")).toEqual([
      { result: "acquired", value: 1 },
      { result: "taken_over", value: 0 },
      { result: "refused", value: 1 },
    ]);
    for (const name of ["holdfast_lock_wait_seconds", "holdfast_lock_hold_seconds"])
      expect(samplesOf(text, `${name}_count`)).toEqual([{ value: 1 }]);
  });

  test("every family of a busy instance is one that the reference names, and Prometheus accepts it", async () => {
    await house.holdfast.schedules.upsert("every", { job: "study", every: "1s", input: null });
    await house.holdfast.start();
    const { id } = await house.holdfast.enqueue("study", 'no "such"\nmarket');
    await house.holdfast.runs.wait(id, { timeout: "5m" });
    const { text } = await scrape();
    const families = parsePrometheusTextFormat(text);
    expect(families.length).toBeGreaterThan(25);
    for (const { name, type, help } of families) {
      const known = METRICS[name as keyof typeof METRICS];
      expect({ name, type: type.toLowerCase(), help }).toEqual({
        name,
        type: known?.type,
        help: known?.help,
      });
    }
    if (hasTool("promtool", "the text of /metrics")) {
      const said = await tool("promtool", ["check", "metrics"], text);
      expect(said.trim()).toBe("");
    }
  });

  test("a client that accepts OpenMetrics gets it", async () => {
    const accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5";
    const { text, headers } = await scrape({ accept });
    expect(headers.get("content-type")).toBe(
      "application/openmetrics-text; version=1.0.0; charset=utf-8",
    );
    expect(text.endsWith("\n# EOF\n")).toBe(true);
    expect(text).toContain("# TYPE holdfast_claims counter\n");
  });

  test("metrics need the scope read, and a wrong format is named", async () => {
    expect((await house.ask("GET", "/metrics", { secret: null })).status).toBe(401);
    expect((await house.ask("GET", "/metrics", { secret: SECRETS.worker })).status).toBe(403);
    await expect(house.holdfast.metrics({ format: "json" as never })).rejects.toThrow(
      /metrics\(\)\.format: must be "prometheus" or "openmetrics"/,
    );
  });
});
