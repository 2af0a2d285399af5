// A dispatched run has one trace id through all processes: the one that a caller brought over HTTP, in the
// instance that sends it, in the service that executes it, and where its callback ends it.

import { spawn } from "node:child_process";
import { rmSync } from "node:fs";
import path from "node:path";
import readline from "node:readline";
import { expect, test } from "vitest";
import { Holdfast } from "../../src/holdfast.js";
import { createHttpHandler } from "../../src/http/handler.js";
import { serve } from "../../src/http/server.js";
import { collectSpans } from "../support/spans.js";
import { until } from "../support/until.js";
import { newFolder } from "./worker-processes.js";

const FIXTURE = path.join(import.meta.dirname, "fixtures", "traced-service.mjs");
const CALLER = "4bf92f3577b34da6a3ce929d0e0e4736";

type Line = {
  readonly port?: number;
  readonly status?: number;
  readonly made?: readonly { readonly name: string; readonly traceId: string }[];
};

test("a dispatched run has one trace id through all processes", async () => {
  const spans = collectSpans();
  const folder = newFolder();
  const service = spawn(process.execPath, [FIXTURE], { stdio: ["ignore", "pipe", "inherit"] });
  const gone = new Promise((resolve) => service.once("exit", resolve));
  const lines: Line[] = [];
  readline.createInterface({ input: service.stdout }).on("line", (line) => {
    lines.push(JSON.parse(line));
  });
  const { port } = await until("the service listens", () => lines.find((line) => line.port));
  // The address is needed before there is a server: one that was free a moment ago.
  const probe = await serve({
    handler: async () => ({ status: 204, headers: {}, content: null }),
    host: "127.0.0.1",
    port: 0,
  });
  await probe.close();
  const holdfast = new Holdfast({
    database: `sqlite:${path.join(folder, "test.db")}`,
    telemetry: { opentelemetry: spans.api },
    publicUrl: probe.url,
    workers: {
      studies: {
        url: `http://127.0.0.1:${port}/run`,
        secret: "a-secret-of-enough-letters",
        allowPrivateNetwork: true,
      },
    },
    logger: { debug() {}, info() {}, warn() {}, error() {} },
  });
  holdfast.job("study", { worker: "studies" });
  const handler = createHttpHandler(holdfast, { secrets: { enqueue: "the-enqueue-secret" } });
  const served = await serve({
    handler,
    host: "127.0.0.1",
    port: Number(new URL(probe.url).port),
  });
  try {
    await holdfast.start();
    const answer = await fetch(`${served.url}/api/jobs/study/runs`, {
      method: "POST",
      headers: {
        authorization: "Bearer the-enqueue-secret",
        "content-type": "application/json",
        traceparent: `00-${CALLER}-00f067aa0ba902b7-01`,
      },
      body: JSON.stringify({ input: { market: "eu" } }),
    });
    const { id } = (await answer.json()) as { id: string };
    const run = await holdfast.runs.wait(id, { timeout: "5m" });
    expect(run).toMatchObject({ status: "completed", result: { found: 3 }, traceId: CALLER });
    const theirs = await until("the service has called back", () =>
      lines.find((line) => line.made),
    );
    expect(theirs).toMatchObject({ status: 200, made: [{ name: "work", traceId: CALLER }] });
    const ours = spans.ended().map((span) => [span.name, span.spanContext().traceId]);
    expect(ours.map(([name]) => name).sort()).toEqual([
      "claim study",
      "complete study",
      "dispatch studies",
      "enqueue study",
      "run study",
    ]);
    expect(new Set(ours.map(([, traceId]) => traceId))).toEqual(new Set([CALLER]));
  } finally {
    service.kill("SIGTERM");
    await gone;
    await served.close();
    await holdfast.stop({ grace: 0 });
    await spans.end();
    rmSync(folder, { recursive: true, force: true });
  }
});
