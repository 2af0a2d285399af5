// Check-ins over HTTP: their routes, who may call them, what they take and answer, on both databases.

import { describe, expect, test } from "vitest";
import { createClient } from "../../src/client/index.js";
import { DATABASES, newHouse, SECRETS } from "./house.js";

describe.each(DATABASES)("check-ins over HTTP on %s", (database) => {
  test("it began, it failed, it is done: each by its route, with the scope trigger", async () => {
    const house = await newHouse(database);
    const secret = SECRETS.trigger;
    try {
      const { body: made } = await house.ask("PUT", "/api/schedules/backup", {
        body: { monitor: true, cron: "0 3 1 1 *", grace: "30m", tags: ["db"] },
      });
      expect(made.schedule).toMatchObject({ monitor: true, grace: "30m", beganAt: null });
      // As curl -X POST sends it: without a body.
      const began = await house.ask("POST", "/api/ping/backup/start", { secret });
      expect(began).toMatchObject({ status: 200, body: { ok: true, state: "start", runId: null } });
      const { body: begun } = await house.ask("GET", "/api/schedules/backup");
      expect(begun.beganAt).toEqual(expect.any(String));
      const failed = await house.ask("POST", "/api/ping/backup/fail", {
        secret,
        body: { reason: "the disk is full" },
      });
      expect(failed.body).toMatchObject({ ok: true, state: "fail", repeated: false });
      const { body: run } = await house.ask("GET", `/api/runs/${failed.body.runId}`);
      expect(run).toMatchObject({
        status: "failed",
        job: "monitor:backup",
        durationMs: expect.any(Number),
        error: { message: "the disk is full" },
      });
      const done = await house.ask("POST", "/api/ping/backup", {
        secret,
        body: { deliveryId: "d" },
      });
      expect(done.body).toMatchObject({ runId: failed.body.runId, repeated: false, paused: false });
      const again = await house.ask("POST", "/api/ping/backup", { secret });
      expect(again.body).toMatchObject({ runId: failed.body.runId, repeated: true });
      // The client says the same, and its lost answers do no more than once.
      const client = createClient({
        url: "http://127.0.0.1:4780",
        secret,
        fetch: async (input, init) => house.handler(new Request(input as string, init)),
      });
      expect(await client.ping("backup")).toMatchObject({ state: "ok", repeated: true });
      expect(await client.ping("backup", { state: "fail", reason: "again" })).toMatchObject({
        state: "fail",
        repeated: false,
      });
      expect(await client.ping("backup", { state: "start" })).toMatchObject({ state: "start" });

      // The heartbeat of another Holdfast has its own to say, which is not read.
      const beat = { app: "shop", instance: "host:1:0", openAlerts: 0, at: "2030-01-01T00:00:00Z" };
      expect(await house.ask("POST", "/api/ping/backup", { secret, body: beat })).toMatchObject({
        status: 200,
        body: { state: "ok" },
      });

      // Callers that are refused, and wrong calls.
      const asked = async (where: string, options: Parameters<typeof house.ask>[2] = {}) => {
        const { status, body } = await house.ask("POST", where, { secret, ...options });
        return `${status} ${body.error}: ${body.detail}`;
      };
      expect(await asked("/api/ping/backup", { secret: SECRETS.read })).toMatch(/^403 /);
      expect(await asked("/api/ping/backup", { secret: null })).toMatch(/^401 /);
      expect(await asked("/api/ping/nobody")).toMatch(/^404 schedule_not_found/);
      expect(await asked("/api/ping/backup/done")).toMatch(/^404 /);
      expect(await asked("/api/ping/backup", { body: { deliveryId: 1 } })).toMatch(
        /^400 .*delivery/,
      );
      expect(await asked("/api/ping/backup/fail", { body: { raeson: "x" } })).toMatch(
        /^400 .*raeson/,
      );
      const long = { body: { reason: "x".repeat(10_001) } };
      expect(await asked("/api/ping/backup/fail", long)).toMatch(/^400 .*reason/);
      expect((await house.ask("GET", "/api/ping/backup")).status).toBe(405);
      // Verbs that need a run here refuse a monitor by name.
      expect(await asked("/api/schedules/backup/trigger")).toMatch(
        /^409 runs_elsewhere.*is a monitor/,
      );
      house.holdfast.job("study", { run: () => null });
      // Among others it is refused alone.
      const { id } = await house.holdfast.enqueue("study", null);
      const ids = [failed.body.runId, id];
      const { body: retried } = await house.ask("POST", "/api/runs/retry", { body: { ids } });
      expect(retried.runs).toEqual([
        { id: failed.body.runId, status: "runs_elsewhere" },
        { id, status: "not_terminal" },
      ]);
      await house.holdfast.schedules.upsert("s", { job: "study", cron: "0 3 1 1 *" });
      expect(await asked("/api/ping/s")).toMatch(/^409 not_a_monitor.*monitor: true/);
      const bare = await house.ask("PUT", "/api/schedules/t", { body: { cron: "0 3 * * *" } });
      expect(bare).toMatchObject({ status: 400 });
    } finally {
      await house.end();
    }
  });
});
