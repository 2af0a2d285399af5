// The text of metrics, read back by a parser that is not ours.

import parsePrometheusTextFormat from "parse-prometheus-text-format";
import { expect, test } from "vitest";
import { exposition, type Family } from "./exposition.js";
import { Counter, Histogram, OTHER, SERIES_MAX } from "./meters.js";
import { METRICS } from "./metric-names.js";

const family = (over: Partial<Family>): Family => ({
  name: "holdfast_runs_total",
  type: "counter",
  help: "Runs.",
  samples: [],
  ...over,
});

test("a label value comes back as it was, whatever is in it", () => {
  const counter = new Counter(["job*"]);
  const hostile = ['say "hi"', "a\\b", "two\nlines", "ünïcode 🎉", "a,b=c{d}", ""];
  for (const [at, job] of hostile.entries()) counter.add([job], at + 1);
  const text = exposition([family({ samples: counter.samples() })], "prometheus");
  expect(text.split("\n")).toHaveLength(2 + hostile.length + 1);
  const [parsed] = parsePrometheusTextFormat(text);
  expect(parsed?.metrics.map(({ labels, value }) => [labels?.job, value])).toEqual(
    hostile.map((job, at) => [job, String(at + 1)]),
  );
});

test("a histogram's buckets include those below, and its sum and count are there", () => {
  const histogram = new Histogram([0.1, 1, 10], ["job*"]);
  for (const seconds of [0.05, 0.1, 0.5, 5, 50]) histogram.observe(["study"], seconds);
  const text = exposition(
    [family({ name: "holdfast_x_seconds", type: "histogram", samples: histogram.samples() })],
    "prometheus",
  );
  const [parsed] = parsePrometheusTextFormat(text);
  expect(parsed).toMatchObject({
    type: "HISTOGRAM",
    metrics: [{ buckets: { "0.1": "2", "1": "3", "10": "4", "+Inf": "5" } }],
  });
  expect(text).toContain('\nholdfast_x_seconds_sum{job="study"} 55.65\n');
  expect(text).toContain('\nholdfast_x_seconds_count{job="study"} 5\n');
});

test("a family without a value is left out, and numbers that are none are written as such", () => {
  const value = (name: string, each: number) =>
    family({ name, type: "gauge", samples: [{ labels: [], value: each }] });
  const text = exposition(
    [family({}), value("a", Number.NaN), value("b", Infinity), value("c", -Infinity)],
    "prometheus",
  );
  expect(text).not.toContain("holdfast_runs_total");
  expect(text).toContain("\na NaN\n");
  expect(text).toContain("\nb +Inf\n");
  expect(text).toContain("\nc -Inf\n");
});

test("OpenMetrics names a counter without its ending, and says where it ends", () => {
  const text = exposition([family({ samples: [{ labels: [], value: 3 }] })], "openmetrics");
  expect(text).toBe(
    "# HELP holdfast_runs Runs.\n# TYPE holdfast_runs counter\nholdfast_runs_total 3\n# EOF\n",
  );
});

test("beyond a number of label values the rest is counted together, and nothing is lost", () => {
  const counter = new Counter(["job*", "outcome"]);
  for (let at = 0; at < SERIES_MAX + 250; at += 1) counter.add([`job-${at}`, "completed"]);
  counter.add(["one-more", "failed"]);
  const samples = counter.samples();
  expect(samples.length).toBe(SERIES_MAX + 2);
  const of = (outcome: string) =>
    samples.find(({ labels }) => labels[0]?.[1] === OTHER && labels[1]?.[1] === outcome)?.value;
  expect([of("completed"), of("failed")]).toEqual([250, 1]);
});

test("names follow the rules: ours, counters by _total, times in seconds", () => {
  for (const [name, { type }] of Object.entries(METRICS)) {
    expect(name).toMatch(/^holdfast_[a-z_]+$/);
    expect(name.endsWith("_total")).toBe(type === "counter");
    if (type === "histogram") expect(name).toMatch(/_seconds$/);
  }
});
