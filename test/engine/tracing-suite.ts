// Spans: all parts of one piece of work have one trace id and the right parents.

import type { ReadableSpan } from "@opentelemetry/sdk-trace-base";
import { expect } from "vitest";
import { ConfigurationError, PermanentError } from "../../src/shared/errors.js";
import { collectSpans, type Spans } from "../support/spans.js";
import type { WorldTest } from "./world.js";

const named = (spans: Spans, name: string) => spans.ended().filter((each) => each.name === name);
const one = (spans: Spans, name: string): ReadableSpan => {
  const found = named(spans, name);
  expect(found.map((each) => each.name)).toEqual([name]);
  return found[0] as ReadableSpan;
};
const traceOf = (span: ReadableSpan) => span.spanContext().traceId;
const isUnder = (span: ReadableSpan, parent: ReadableSpan) =>
  span.parentSpanContext?.spanId === parent.spanContext().spanId;

async function withSpans(work: (spans: Spans) => Promise<void>): Promise<void> {
  const spans = collectSpans();
  try {
    await work(spans);
  } finally {
    await spans.end();
  }
}

export function tracingSuite(test: WorldTest): void {
  test("a request, its enqueue, the claim, every attempt and the handler's own spans are one trace", ({
    world,
  }) =>
    withSpans(async (spans) => {
      const { api } = spans;
      const telemetry = { opentelemetry: api };
      const [caller, worker] = [world.member({ telemetry }), world.member({ telemetry })];
      const asked = caller.holdfast.job("study", { retry: { attempts: 2, delay: "1s" } });
      worker.holdfast.job("study", {
        retry: { attempts: 2, delay: "1s" },
        run: (_, ctx) => {
          api.trace.getTracer("mine").startSpan("look it up").end();
          if (ctx.attempt === 1) throw new Error("the bank hung up");
        },
      });
      const tracer = api.trace.getTracer("mine");
      const { id } = await tracer.startActiveSpan("POST /orders", async (span) => {
        const enqueued = await asked.enqueue(null, { tags: ["eu"] });
        span.end();
        return enqueued;
      });
      await worker.holdfast.start();
      await world.ended(id);
      const request = one(spans, "POST /orders");
      const enqueue = one(spans, "enqueue study");
      expect(isUnder(enqueue, request)).toBe(true);
      const runs = named(spans, "run study");
      expect(runs.map(({ attributes }) => attributes)).toMatchObject([
        { "holdfast.run": id, "holdfast.attempt": 1, "holdfast.outcome": "failed" },
        { "holdfast.run": id, "holdfast.attempt": 2, "holdfast.outcome": "completed" },
      ]);
      expect(runs.map((run) => isUnder(run, enqueue))).toEqual([true, true]);
      expect(runs.map(({ status }) => status.message)).toEqual(["the bank hung up", undefined]);
      const lookups = named(spans, "look it up");
      expect(lookups.map((each, at) => isUnder(each, runs[at] as ReadableSpan))).toEqual([
        true,
        true,
      ]);
      expect(named(spans, "claim study")).toHaveLength(2);
      expect(new Set(spans.ended().map(traceOf))).toEqual(new Set([traceOf(request)]));
      // Shown, and apart from what users gave.
      const run = await caller.holdfast.runs.get(id);
      expect(run).toMatchObject({ traceId: traceOf(request), tags: ["eu"] });
      expect((await caller.holdfast.runs.list({ tag: "eu" })).runs).toHaveLength(1);
    }));

  test("a tick and its run are one trace, and of two instances that see it one makes the span", ({
    world,
  }) =>
    withSpans(async (spans) => {
      const telemetry = { opentelemetry: spans.api };
      for (const { holdfast } of [world.member({ telemetry }), world.member({ telemetry })]) {
        const study = holdfast.job("study", { run: () => undefined });
        holdfast.schedule("minutely", study, { every: "1m", tags: ["nightly"] });
        await holdfast.start();
      }
      await world.clock.advance(62_000);
      const tick = one(spans, "tick minutely");
      const run = one(spans, "run study");
      expect(isUnder(run, tick)).toBe(true);
      expect(traceOf(run)).toBe(traceOf(tick));
      const [found] = await (await world.store()).runs.list({ limit: 1, schedule: "minutely" });
      expect(found).toMatchObject({
        tags: ["nightly"],
        trace: expect.stringContaining(traceOf(tick)),
      });
    }));

  test("runs that a run makes belong to its trace", ({ world }) =>
    withSpans(async (spans) => {
      const { holdfast } = world.member({ telemetry: { opentelemetry: spans.api } });
      const child = holdfast.job("child", { run: () => undefined });
      const parent = holdfast.job("parent", {
        run: async (_, ctx) => {
          await ctx.enqueue(child, null);
          await ctx.enqueueBatch([
            { job: child, input: 1 },
            { job: child, input: 2 },
          ]);
        },
      });
      await holdfast.start();
      await world.ended((await parent.enqueue(null)).id);
      await world.clock.advance(2_000);
      expect(named(spans, "run child")).toHaveLength(3);
      expect(new Set(spans.ended().map(traceOf)).size).toBe(1);
    }));

  test("a lock is a span with its waiting, holding and releasing inside", ({ world }) =>
    withSpans(async (spans) => {
      const { holdfast } = world.member({ telemetry: { opentelemetry: spans.api } });
      const held = holdfast.lock("import", { lease: "1m" }, async () => {
        await holdfast.lock("import", { lease: "1m" }, () => undefined);
        spans.api.trace.getTracer("mine").startSpan("copy").end();
      });
      await world.clock.until(held);
      const [refused, lock] = named(spans, "lock import") as [ReadableSpan, ReadableSpan];
      expect(lock.attributes).toMatchObject({ "holdfast.outcome": "released" });
      expect(refused.attributes).toMatchObject({ "holdfast.outcome": "refused" });
      const hold = one(spans, "lock.hold import");
      for (const part of [hold, one(spans, "lock.release import")])
        expect(isUnder(part, lock)).toBe(true);
      expect(named(spans, "lock.wait import").filter((each) => isUnder(each, lock))).toHaveLength(
        1,
      );
      expect(isUnder(one(spans, "copy"), hold)).toBe(true);
    }));

  test("a dispatch carries its trace to the service, and the answer ends the spans", ({ world }) =>
    withSpans(async (spans) => {
      const sent: (string | undefined)[] = [];
      const { holdfast } = world.member(
        {
          telemetry: { opentelemetry: spans.api },
          publicUrl: "https://app.example",
          workers: { studies: { url: "https://studies.example", secret: "a-secret-of-letters" } },
        },
        {
          sends: {
            room: () => 1,
            dispatch: async ({ traceparent }) => {
              sent.push(traceparent);
              return { kind: "completed", result: "1" };
            },
          },
        },
      );
      const study = holdfast.job("study", { worker: "studies" });
      await holdfast.start();
      await world.ended((await study.enqueue(null)).id);
      const dispatch = one(spans, "dispatch studies");
      const { traceId, spanId } = dispatch.spanContext();
      expect(sent).toEqual([`00-${traceId}-${spanId}-01`]);
      expect(isUnder(dispatch, one(spans, "run study"))).toBe(true);
      expect(traceId).toBe(traceOf(one(spans, "enqueue study")));
    }));

  test("without OpenTelemetry a run has no trace, and what another process traced is kept and passed on", ({
    world,
  }) =>
    withSpans(async (spans) => {
      const [traced, plain] = [
        world.member({ telemetry: { opentelemetry: spans.api } }),
        world.member(),
      ];
      const study = traced.holdfast.job("study", {});
      plain.holdfast.job("other", {});
      const { id } = await study.enqueue(null);
      const bare = await plain.holdfast.enqueue("other", null);
      expect((await plain.holdfast.runs.get(bare.id))?.traceId).toBe(null);
      const { traceId } = one(spans, "enqueue study").spanContext();
      expect((await plain.holdfast.runs.get(id))?.traceId).toBe(traceId);
      const [claimed] = await plain.holdfast.remote.claim({
        instance: "elsewhere",
        jobs: ["study"],
        limit: 1,
      });
      expect(claimed).toMatchObject({
        id,
        tags: [],
        traceparent: expect.stringContaining(traceId),
      });
      await traced.holdfast.remote.fail(
        { id, fence: claimed?.fence ?? 0 },
        { error: { message: "no" }, permanent: true },
      );
      expect(traceOf(one(spans, "fail study"))).toBe(traceId);
    }));

  test("a failed run's span has the class of its error, its stack, and its code as an attribute", ({
    world,
  }) =>
    withSpans(async (spans) => {
      const { holdfast } = world.member({ telemetry: { opentelemetry: spans.api } });
      class MarketClosed extends Error {
        readonly code = "MARKET_CLOSED";
      }
      const study = holdfast.job("study", {
        retry: { attempts: 1 },
        run() {
          throw new MarketClosed("closed on Sundays");
        },
      });
      await holdfast.start();
      const { id } = await study.enqueue(null);
      await world.ended(id);
      const { attributes, events } = one(spans, "run study");
      expect(attributes["holdfast.error.code"]).toBe("MARKET_CLOSED");
      expect(events).toHaveLength(1);
      expect(events[0]?.attributes).toMatchObject({
        "exception.type": "MarketClosed",
        "exception.message": "closed on Sundays",
        "exception.stacktrace": (await holdfast.runs.get(id))?.error?.stack,
      });
      expect(events[0]?.attributes?.["exception.stacktrace"]).toContain("tracing-suite");
    }));

  test("an enqueue that is refused ends its span with the error", ({ world }) =>
    withSpans(async (spans) => {
      const { holdfast, faults } = world.member({ telemetry: { opentelemetry: spans.api } });
      const study = holdfast.job("study", {});
      await study.enqueue(1, { key: "a" });
      faults.fail("enqueue.runs", "before", { error: new PermanentError("no room") });
      await expect(study.enqueue(2)).rejects.toThrow("no room");
      expect(named(spans, "enqueue study").map(({ status }) => status.message)).toEqual([
        undefined,
        "no room",
      ]);
    }));

  test("a value that is not the module is refused, with a right example", ({ world }) => {
    for (const telemetry of [{ opentelemetry: {} }, { otel: 1 }, 7]) {
      expect(() => world.member({ telemetry: telemetry as never })).toThrow(ConfigurationError);
    }
    expect(() => world.member({ telemetry: { opentelemetry: {} as never } })).toThrow(
      /telemetry\.opentelemetry: must be the module "@opentelemetry\/api", for example/,
    );
  });
}
