// Remote workers as real processes that die, freeze and answer too late: nothing is lost, nothing is
// doubled.

import { type ChildProcess, spawn } from "node:child_process";
import { rmSync } from "node:fs";
import path from "node:path";
import readline from "node:readline";
import pg from "pg";
import { test as base, describe, expect } from "vitest";
import { Holdfast } from "../../src/holdfast.js";
import { createHttpHandler } from "../../src/http/handler.js";
import { serve } from "../../src/http/server.js";
import { until } from "../support/until.js";
import { ended, newFolder, POSTGRES_URL } from "./worker-processes.js";

const FIXTURE = path.join(import.meta.dirname, "fixtures", "remote-worker.mjs");
const SECRET = "the-worker-secret";

type Line = { readonly event: string; readonly [field: string]: unknown };

class RemoteWorker {
  readonly lines: Line[] = [];
  readonly child: ChildProcess;
  readonly exit: Promise<unknown>;

  constructor(url: string, instance: string) {
    const given = JSON.stringify({ url, secret: SECRET, instance });
    this.child = spawn(process.execPath, [FIXTURE, given], { stdio: ["pipe", "pipe", "inherit"] });
    this.exit = new Promise((resolve) => this.child.once("exit", resolve));
    readline
      .createInterface({ input: this.child.stdout as NodeJS.ReadableStream })
      .on("line", (line) => this.lines.push(JSON.parse(line)));
    this.child.stdin?.on("error", () => undefined);
  }

  says(event: string): Promise<Line> {
    return until(`a worker says "${event}"`, () => this.lines.find((line) => line.event === event));
  }

  endRun(): void {
    this.child.stdin?.write("end\n");
  }

  async kill(): Promise<void> {
    this.child.kill("SIGKILL");
    await this.exit;
  }
}

type Scene = { readonly holdfast: Holdfast; readonly worker: (name: string) => RemoteWorker };
type Database = { readonly url: string; readonly schema?: string; clear(): Promise<void> };

function describeWorkers(name: string, makeDatabase: () => Database): void {
  const test = base.extend<{ scene: Scene }>({
    scene: async ({ task: _ }, use) => {
      const { url: database, schema, clear } = makeDatabase();
      const logger = { debug() {}, info() {}, warn() {}, error() {} };
      const holdfast = new Holdfast({ database, ...(schema ? { schema } : {}), logger });
      holdfast.job("study", { lease: "3s", retry: { attempts: 20, delay: 1 } });
      const handler = createHttpHandler(holdfast, { secrets: { worker: SECRET } });
      const served = await serve({ handler, host: "127.0.0.1", port: 0 });
      const workers: RemoteWorker[] = [];
      const worker = (instance: string) => {
        const made = new RemoteWorker(served.url, instance);
        workers.push(made);
        return made;
      };
      await use({ holdfast, worker });
      await Promise.all(workers.map((each) => each.kill()));
      await served.close();
      await holdfast.stop({ grace: 0 });
      await clear();
    },
  });

  describe(`remote workers on ${name}`, () => {
    test("the run of a worker that was killed goes to the next one", async ({ scene }) => {
      const { holdfast, worker } = scene;
      const { id } = await holdfast.enqueue("study", {});
      const first = worker("first");
      await first.says("begun");
      await first.kill();
      const second = worker("second");
      await second.says("begun");
      second.endRun();
      expect(await ended(holdfast, id)).toMatchObject({ status: "completed", result: "second" });
      const ends = (await holdfast.runs.attempts(id)).map(({ end, holder }) => [holder, end]);
      expect(ends).toEqual([
        ["first", "lost"],
        ["second", "completed"],
      ]);
    });

    test("a worker that was frozen past its lease wakes, stops, and changes nothing", async ({
      scene,
    }) => {
      const { holdfast, worker } = scene;
      const { id } = await holdfast.enqueue("study", {});
      const first = worker("first");
      const begun = await first.says("begun");
      first.child.kill("SIGSTOP");
      const second = worker("second");
      const taken = await second.says("begun");
      expect(taken).toMatchObject({ runId: id });
      expect(Number(taken.fence)).toBeGreaterThan(Number(begun.fence));
      first.child.kill("SIGCONT");
      expect(await first.says("aborted")).toMatchObject({ code: "LEASE_LOST" });
      // It answers all the same, late.
      first.endRun();
      await first.says("ending");
      second.endRun();
      expect(await ended(holdfast, id)).toMatchObject({ status: "completed", result: "second" });
      const ends = (await holdfast.runs.attempts(id)).map(({ end }) => end);
      expect(ends).toEqual(["lost", "completed"]);
    });

    test("a worker that is asked to stop ends its run first", async ({ scene }) => {
      const { holdfast, worker } = scene;
      const { id } = await holdfast.enqueue("study", {});
      const only = worker("only");
      await only.says("begun");
      only.child.kill("SIGTERM");
      only.endRun();
      await only.says("stopped");
      expect(await holdfast.runs.get(id)).toMatchObject({ status: "completed", attempt: 1 });
      expect(await only.exit).toBe(0);
    });
  });
}

describeWorkers("one SQLite file", () => {
  const folder = newFolder();
  return {
    url: `sqlite:${path.join(folder, "holdfast.db")}`,
    clear: async () => rmSync(folder, { recursive: true, force: true }),
  };
});

describe.skipIf(POSTGRES_URL === undefined)("with a server", () => {
  describeWorkers("PostgreSQL", () => {
    const schema = `remote_${crypto.randomUUID().replaceAll("-", "_")}`;
    const url = POSTGRES_URL as string;
    return {
      url,
      schema,
      clear: async () => {
        const client = new pg.Client(url);
        await client.connect();
        await client.query(`drop schema if exists "${schema}" cascade`);
        await client.end();
      },
    };
  });
});
