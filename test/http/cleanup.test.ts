// POST /api/cleanup: an outside cron calls it so that no run stays with a dead holder.

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { DATABASES, type House, newHouse, SECRETS } from "./house.js";

describe.each(DATABASES)("a cleanup on %s", (database) => {
  let house: House;
  let began: Promise<void>;
  let release: () => void;

  beforeEach(async () => {
    house = await newHouse(database);
    house.holdfast.job("patient", { lease: "1h", timeout: "2h" });
    house.holdfast.job("once", { lease: "1h", timeout: "2h", retry: { attempts: 1 } });
    began = new Promise((resolve) => {
      const held = new Promise<void>((end) => {
        release = end;
      });
      const run = () => {
        resolve();
        return held;
      };
      house.holdfast.job("stuck", { lease: "1h", timeout: "2h", retry: { attempts: 1 }, run });
    });
  });
  afterEach(() => house.end());

  /** Claimed by a remote worker that never responds again. */
  async function abandoned(job: string): Promise<string> {
    const { id } = await house.holdfast.enqueue(job, null);
    const { body } = await house.ask("POST", "/api/worker/claim", {
      body: { instance: "elsewhere", jobs: [job], limit: 1 },
    });
    expect(body.runs).toHaveLength(1);
    return id;
  }

  const clean = (body: object, secret: string = SECRETS.trigger) =>
    house.ask("POST", "/api/cleanup", { secret, body });

  test("by its defaults takes no run from a holder that was seen lately", async () => {
    const id = await abandoned("patient");
    expect(await clean({})).toMatchObject({
      status: 200,
      body: { ok: true, reclaimed: 0, failed: 0 },
    });
    expect(await house.holdfast.runs.get(id)).toMatchObject({ status: "running" });
  });

  test("takes the runs of the silent for an admin, whatever their lease, by each one's own policy", async () => {
    const again = await abandoned("patient");
    const { id: last } = await house.holdfast.enqueue("stuck", null);
    const pass = house.holdfast.tick({ budget: "30s" });
    await began;
    await house.holdfast.enqueue("patient", null);
    const { body } = await clean({ heartbeatTimeoutSeconds: 0 }, SECRETS.admin);
    expect(body).toEqual({ ok: true, reclaimed: 2, failed: 1 });
    expect(await house.holdfast.runs.get(again)).toMatchObject({ status: "pending" });
    expect(await house.holdfast.runs.get(last)).toMatchObject({
      status: "failed",
      error: { code: "LEASE_EXPIRED" },
    });
    const second = await clean({ heartbeatTimeoutSeconds: 0 }, SECRETS.admin);
    expect(second.body).toMatchObject({ reclaimed: 0 });
    release();
    await pass;
  });

  test("takes nothing from a living holder for the scope trigger, whatever times it gives", async () => {
    const id = await abandoned("once");
    const body = { timeoutSeconds: 0, heartbeatTimeoutSeconds: 0 };
    expect(await clean(body)).toMatchObject({
      status: 200,
      body: { ok: true, reclaimed: 0, failed: 0 },
    });
    expect(await house.holdfast.runs.get(id)).toMatchObject({ status: "running", attempt: 1 });
    expect((await clean(body, SECRETS.admin)).body).toMatchObject({ reclaimed: 1 });
  });

  test("ends attempts that ran for too long as over their time", async () => {
    const id = await abandoned("once");
    expect((await clean({ timeoutSeconds: 0 }, SECRETS.admin)).body).toEqual({
      ok: true,
      reclaimed: 1,
      failed: 1,
    });
    expect(await house.holdfast.runs.get(id)).toMatchObject({
      status: "failed",
      error: { code: "TIMEOUT" },
    });
  });

  test("needs the scope trigger, and refuses an invalid number of seconds", async () => {
    expect((await clean({}, SECRETS.read)).status).toBe(403);
    expect(await clean({ timeoutSeconds: -1 })).toMatchObject({
      status: 400,
      body: { error: "body_invalid" },
    });
    expect((await clean({ timeout: 1 })).status).toBe(400);
    await expect(house.holdfast.cleanup({ timeout: "soon" })).rejects.toThrow("cleanup().timeout");
  });
});
