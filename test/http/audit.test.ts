// Tests the audit trail over HTTP, and one quiet instance.

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { DATABASES, type House, newHouse, SECRETS } from "./house.js";

describe.each(DATABASES)("control over HTTP on %s", (database) => {
  let house: House;

  beforeEach(async () => {
    house = await newHouse(database);
    house.holdfast.job("study", { run: () => "done" });
  });
  afterEach(() => house.end());

  test("a change is kept with the scope, the address and the id of its request", async () => {
    const body = { job: "study", cron: "0 2 * * *" };
    const headers = { "x-request-id": "req-7" };
    await house.ask("PUT", "/api/schedules/nightly", { body, headers });
    await house.ask("POST", "/api/schedules/nightly/pause", { body: { note: "why" } });
    await house.ask("POST", "/api/schedules/nightly/pause", { secret: SECRETS.read, body: {} });
    const { body: page } = await house.ask("GET", "/api/audit?noun=schedule", {
      secret: SECRETS.read,
    });
    expect(page.entries).toMatchObject([
      { verb: "pause", name: "nightly", note: "why", via: "http", who: "http", scope: "admin" },
      { verb: "create", name: "nightly", requestId: "req-7", address: "127.0.0.1" },
    ]);
    const first = await house.ask("GET", "/api/audit?limit=1");
    expect(first.body.entries).toHaveLength(1);
    const next = await house.ask("GET", `/api/audit?cursor=${first.body.nextCursor}`);
    expect(next.body.entries).toMatchObject([{ verb: "create" }]);
    expect((await house.ask("GET", "/api/audit?noun=task")).status).toBe(400);
    expect((await house.ask("GET", "/api/audit", { secret: SECRETS.trigger })).status).toBe(403);
  });

  test("an instance is made quiet and woken; an unknown one is not found", async () => {
    await house.holdfast.tick({ limit: 0 });
    const id = encodeURIComponent(house.holdfast.instanceId);
    const quieted = await house.ask("POST", `/api/instances/${id}/quiet`, {
      body: { note: "its memory" },
    });
    expect(quieted).toMatchObject({ status: 200, body: { ok: true } });
    await house.holdfast.enqueue("study", null);
    expect((await house.ask("POST", "/api/tick", { body: {} })).body.executed).toBe(0);
    const { body } = await house.ask("GET", "/api/instances");
    expect(body.instances[0]).toMatchObject({ quietBy: "http", quietNote: "its memory" });
    // As the page shows it: `host:pid:` and the end of the uuid.
    const [host, pid, boot = ""] = house.holdfast.instanceId.split(":");
    const shown = encodeURIComponent(`${host}:${pid}:${boot.slice(-4)}`);
    const woken = await house.ask("POST", `/api/instances/${shown}/wake`, { body: {} });
    expect(woken).toMatchObject({ status: 200, body: { ok: true } });
    expect((await house.ask("POST", "/api/tick", { body: {} })).body.executed).toBe(1);
    const nobody = await house.ask("POST", "/api/instances/nobody/quiet", { body: {} });
    expect(nobody).toMatchObject({ status: 404, body: { error: "instance_not_found" } });
  });
});
