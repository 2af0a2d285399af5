// The pause of everything over HTTP.

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { DATABASES, type House, newHouse, SECRETS } from "./house.js";

describe.each(DATABASES)("the pause of everything over HTTP on %s", (database) => {
  let house: House;

  beforeEach(async () => {
    house = await newHouse(database);
    house.holdfast.job("study", { run: () => "done" });
    house.holdfast.job("far", {});
  });
  afterEach(() => house.end());

  const ask = (method: string, where: string, body?: object) =>
    house.ask(method, where, body === undefined ? {} : { body });

  test("it is set, seen and lifted, and neither a tick nor a remote claim does anything meanwhile", async () => {
    expect((await ask("GET", "/api/pause")).body).toEqual({ paused: null });
    const { id } = await house.holdfast.enqueue("study", null);
    const paused = await ask("POST", "/api/pause", { note: "moving house" });
    expect(paused).toMatchObject({ status: 200, body: { paused: { note: "moving house" } } });
    expect((await ask("GET", "/api/pause")).body).toEqual(paused.body);
    expect((await ask("POST", "/api/tick", {})).body).toMatchObject({ fired: [], executed: 0 });
    await house.holdfast.enqueue("far", null);
    const claim = { instance: "elsewhere", jobs: ["far"], limit: 1 };
    expect((await ask("POST", "/api/worker/claim", claim)).body).toEqual({ runs: [] });
    const { waitingFor } = (await ask("GET", `/api/runs/${id}`)).body;
    expect(waitingFor).toMatchObject({ reason: "paused", note: "moving house" });
    const lifted = await ask("POST", "/api/resume", {});
    expect(lifted.body).toMatchObject({ ok: true, lifted: { note: "moving house" } });
    expect((await ask("POST", "/api/resume", {})).body).toEqual({ ok: true, lifted: null });
    expect((await ask("POST", "/api/tick", {})).body).toMatchObject({ executed: 1 });
  });

  test("it takes the scope admin to set, and read to see", async () => {
    const by = (secret: string, method: string, where: string, body?: object) =>
      house.ask(method, where, { secret, ...(body ? { body } : {}) });
    expect((await by(SECRETS.trigger, "POST", "/api/pause", {})).status).toBe(403);
    expect((await by(SECRETS.trigger, "POST", "/api/resume", {})).status).toBe(403);
    expect((await by(SECRETS.read, "GET", "/api/pause")).status).toBe(200);
    expect((await by(SECRETS.admin, "POST", "/api/pause", { nte: "x" })).body).toMatchObject({
      error: "body_invalid",
    });
    expect(await house.holdfast.paused()).toBeNull();
  });
});
