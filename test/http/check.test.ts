// GET /api/check: whether the tables keep their promises, for callers with the scope read.

import { afterEach, describe, expect, test } from "vitest";
import { CHECKS } from "../../src/store/checks/check-statements.js";
import { DATABASES, type House, newHouse, SECRETS } from "./house.js";

describe.each(DATABASES)("a check over HTTP on %s", (database) => {
  let house: House;
  afterEach(() => house.end());

  const check = (query = "", secret: string | null = SECRETS.read) =>
    house.ask("GET", `/api/check${query}`, { secret });

  test("a healthy database is well, check by check", async () => {
    house = await newHouse(database);
    house.holdfast.job("study", { run: async () => null });
    await house.holdfast.enqueue("study", null);
    await house.holdfast.tick({ limit: 1 });
    const { status, body } = await check("?timeout=1m");
    expect({ status, ok: body.ok }).toEqual({ status: 200, ok: true });
    expect(body.checks).toHaveLength(CHECKS.length);
    for (const each of body.checks)
      expect(each).toMatchObject({ ok: true, violations: 0, evidence: [], error: null });
  });

  test("findings of a team's own check come with their evidence", async () => {
    const checks = { "nothing is lost": "select 'study' as lost" };
    house = await newHouse(database, { options: { checks } });
    await house.holdfast.tick({ limit: 0 });
    const { status, body } = await check();
    expect({ status, ok: body.ok }).toEqual({ status: 200, ok: false });
    expect(body.checks.filter(({ ok }: { ok: boolean }) => !ok)).toMatchObject([
      { name: "nothing is lost", violations: 1, evidence: [{ lost: "study" }], promise: null },
    ]);
  });

  test("needs the scope read, and refuses an invalid duration", async () => {
    house = await newHouse(database);
    expect((await check("", null)).status).toBe(401);
    expect((await check("", SECRETS.trigger)).status).toBe(403);
    expect(await check("?timeout=soon")).toMatchObject({ status: 400 });
    expect(await check("?timeouts=1m")).toMatchObject({ status: 400 });
  });
});
