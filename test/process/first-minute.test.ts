// `npm start`: a day of a shop is played, and then the shop goes on live; a second start goes on with what the first left.

import { spawn } from "node:child_process";
import { rmSync } from "node:fs";
import path from "node:path";
import readline from "node:readline";
import { expect, onTestFinished, test } from "vitest";
import { until } from "../support/until.js";
import { newFolder } from "./worker-processes.js";

const PROGRAM = path.resolve(import.meta.dirname, "../../scripts/start.mjs");

type Started = {
  readonly lines: readonly string[];
  ask<T>(what: string): Promise<T>;
  /** Its exit code after Ctrl-C. */
  end(): Promise<number | null>;
};

async function start(folder: string): Promise<Started> {
  const child = spawn(process.execPath, [PROGRAM], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, HOLDFAST_DEMO_FOLDER: folder, HOLDFAST_PORT: "0" },
  });
  const exit = new Promise<number | null>((resolve) => child.once("exit", resolve));
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await exit;
  });
  const lines: string[] = [];
  readline.createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
  const url = await until("it says where to look", () => {
    if (child.exitCode !== null) throw new Error(lines.join("\n"));
    const line = lines.find((each) => each.startsWith("The demo goes on live"));
    return line && /open (\S+),/.exec(line)?.[1];
  });
  return {
    lines,
    ask: async <T>(what: string) => (await (await fetch(url + what)).json()) as T,
    end: () => {
      child.kill("SIGINT");
      return exit;
    },
  };
}

type Runs = { readonly runs: readonly { readonly createdAt: string }[] };
type Ticks = {
  readonly ticks: readonly { readonly outcome: string; readonly at: string }[];
};

test("npm start shows a day with a failure, a skip, a missed stretch and a queue, goes on live, and ends with Ctrl-C", async () => {
  const folder = newFolder();
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const demo = path.join(folder, "demo");
  const startedAt = Date.now();
  const first = await start(demo);
  expect(first.lines.filter((line) => line.startsWith("Playing")).length).toBeGreaterThan(2);

  const { schedules } = await first.ask<{ schedules: { name: string; tags: string[] }[] }>(
    "/api/schedules",
  );
  expect(schedules).toHaveLength(8);
  expect(schedules.filter(({ tags }) => !tags.includes("demo"))).toEqual([]);
  for (const outcome of ["fired", "skipped", "missed"]) {
    const { ticks } = await first.ask<Ticks>(`/api/ticks?outcome=${outcome}&limit=1000`);
    expect(ticks.length, outcome).toBeGreaterThan(0);
    if (outcome === "fired")
      expect(Date.parse(ticks.at(-1)?.at ?? "")).toBeLessThan(startedAt - 12 * 3_600_000);
  }
  const { runs: failed } = await first.ask<Runs>("/api/runs?status=failed");
  expect(failed.length).toBeGreaterThan(5);
  await until("orders wait in line", async () => {
    const { queues } = await first.ask<{ queues: { name: string; waiting: number }[] }>(
      "/api/queues",
    );
    return queues.find(({ name }) => name === "packing")?.waiting;
  });
  // Live: a run that was made since the program was started.
  await until("a run of now", async () => {
    const { runs } = await first.ask<Runs>("/api/runs?limit=5");
    return runs.some(({ createdAt }) => Date.parse(createdAt) > startedAt);
  });
  expect(await first.end()).toBe(0);
  expect(first.lines.at(-1)).toMatch(/^\d+ finished, \d+ handed back, 0 abandoned$/);

  const second = await start(demo);
  expect(second.lines.filter((line) => line.startsWith("Playing"))).toEqual([]);
  const { runs } = await second.ask<Runs>("/api/runs?status=failed");
  expect(runs.length).toBeGreaterThanOrEqual(failed.length);
  expect(await second.end()).toBe(0);
});
