// Every pair of a policy and what is live: whether a tick, a trigger or a waiting run may go.

import { describe, expect, test } from "vitest";
import {
  admitTick,
  admitTrigger,
  gateToOpen,
  isRevivalGated,
  type LiveRun,
  OVERLAPS,
} from "./overlap.js";

/** `"s"`: a scheduled run, `"m?"`: a manual one that waits. */
function live(...runs: string[]): LiveRun[] {
  const modes = { s: "scheduled", m: "manual", t: "test", b: "backfill" } as const;
  return runs.map((text, index) => ({
    id: `${text}${index}`,
    mode: modes[text[0] as "s"],
    nominalAt: null,
    isGated: text.endsWith("?"),
  }));
}

const FREE = { isAdmitted: true, isGated: false, cancels: [] };
const WAITS = { isAdmitted: true, isGated: true, cancels: [] };
const onTime = { isCatchUp: false };

describe("a tick", () => {
  test("runs at once where nothing is live, whatever the policy", () => {
    for (const overlap of OVERLAPS) expect(admitTick(overlap, [], onTime)).toEqual(FREE);
  });

  test("meets a scheduled run by its policy", () => {
    const scheduled = live("s");
    const refused = { isAdmitted: false, reason: "overlap", run: "s0" };
    expect(admitTick("skip", scheduled, onTime)).toEqual(refused);
    expect(admitTick("queue", scheduled, onTime)).toEqual(WAITS);
    expect(admitTick("allow", scheduled, onTime)).toEqual(FREE);
    expect(admitTick("replace", scheduled, onTime)).toEqual({ ...WAITS, cancels: ["s0"] });
  });

  test("is queue_full only where a scheduled run waits already", () => {
    const full = { isAdmitted: false, reason: "queue_full", run: "s?1" };
    expect(admitTick("queue", live("s", "s?"), onTime)).toEqual(full);
    expect(admitTick("queue", live("s", "m?"), onTime)).toEqual(WAITS);
  });

  test("waits for runs of other modes and cancels none of them", () => {
    for (const overlap of ["skip", "queue", "replace"] as const)
      for (const mode of ["m", "t", "b"])
        expect(admitTick(overlap, live(mode), onTime)).toEqual(WAITS);
    const replacing = admitTick("replace", live("t", "s", "m", "s?"), onTime);
    expect(replacing).toEqual({ ...WAITS, cancels: ["s1", "s?3"] });
  });

  test("to be caught up waits for whatever is live, and is never left out", () => {
    for (const overlap of OVERLAPS) {
      expect(admitTick(overlap, [], { isCatchUp: true })).toEqual(FREE);
      expect(admitTick(overlap, live("s", "s?"), { isCatchUp: true })).toEqual(WAITS);
    }
  });
});

describe("a trigger", () => {
  test("is locked under skip by any live run, and names the one that runs", () => {
    expect(admitTrigger("skip", [])).toEqual(FREE);
    for (const mode of ["s", "m", "t", "b"])
      expect(admitTrigger("skip", live(mode))).toMatchObject({
        isAdmitted: false,
        run: `${mode}0`,
      });
    expect(admitTrigger("skip", live("s?", "m"))).toMatchObject({ run: "m1" });
  });

  test("waits under queue, runs under allow, replaces scheduled and manual runs under replace", () => {
    const all = live("s", "m", "t", "b");
    expect(admitTrigger("queue", all)).toEqual(WAITS);
    expect(admitTrigger("allow", all)).toEqual(FREE);
    expect(admitTrigger("replace", all)).toEqual({ ...WAITS, cancels: ["s0", "m1"] });
  });
});

test("a revived run waits under skip and queue while another is live", () => {
  for (const overlap of OVERLAPS) {
    expect(isRevivalGated(overlap, [])).toBe(false);
    expect(isRevivalGated(overlap, live("t"))).toBe(overlap === "skip" || overlap === "queue");
  }
});

describe("a gate", () => {
  test("opens for the first run once nothing runs", () => {
    for (const overlap of OVERLAPS) {
      expect(gateToOpen(overlap, [])).toBeNull();
      expect(gateToOpen(overlap, live("s"))).toBeNull();
      expect(gateToOpen(overlap, live("s?", "s?"))).toBe("s?0");
      expect(gateToOpen(overlap, live("s", "s?"))).toBeNull();
    }
  });

  test("stays shut while a later one runs, except where runs may overlap", () => {
    expect(gateToOpen("skip", live("s?", "m"))).toBeNull();
    expect(gateToOpen("allow", live("s?", "m"))).toBe("s?0");
  });
});
