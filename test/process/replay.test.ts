// Gives row changes of real processes, recorded row by row, to the simulator's checkers. Each history is damaged in
// one place, so that the tests show that the checkers notice it.

import { describe, expect, test } from "vitest";
import type { Entry } from "../../chaos/history-tables.mjs";
import { replay } from "../../chaos/replay.mjs";

describe("the simulator's checkers, given a recorded history", () => {
  test.each<[what: string, check: string | null, spoil: (entries: Entry[]) => void]>([
    ["nothing in a sound one", null, () => undefined],
    ["a run that was claimed twice", "S16", (entries) => entries.splice(3, 0, claimOf(2))],
    ["a result of somebody else", "S3", ([, , , , end]) => Object.assign(end ?? {}, { who: "b" })],
    ["a run that left its tables", "S16", ([, , made]) => made?.notes.pop()],
    [
      "a tick that was fired twice",
      "S4",
      (entries) => entries.push(entries.at(-1) as Entry, entries.at(-1) as Entry),
    ],
  ])("find %s", async (_, check, spoil) => {
    const entries = recordedHistory();
    spoil(entries);
    const effects = ["begin", "done"].map((what) => ({
      ...{ what, run: "plain", fence: 1, attempt: 1, pid: 11 },
    }));
    const found = await replay({ entries, effects, database: "sqlite" });
    if (check === null) expect(found).toEqual([]);
    else expect(found.map((violation) => violation.check)).toContain(check);
  });
});

function claimOf(fence: number): Entry {
  return {
    who: "a",
    verb: "claims.exchange",
    params: { holder: 1, limit: 5, wantsSuspect: false, settlements: [] },
    at: 1_100 + fence,
    notes: [
      ...(fence === 1 ? [["ready-", "plain"]] : []),
      ["lease+", fence, 1, 1, 1, 1, 0, 0, 2_000, '["plain"]', 0],
    ],
  };
}

/** An instance comes, a run is made, claimed and completed; a schedule is made and ticks. */
function recordedHistory(): Entry[] {
  const when = { kind: "grid", everyMs: 1_000, timezone: "UTC", calendars: [] };
  const definition = JSON.stringify({ overlap: "allow", when });
  const schedule = (cursor: number) => [
    ...[7, "each", 1, definition, 0, cursor, cursor + 1_000],
    ...[null, null, null, 0, 1, "ticked"],
  ];
  const born = ["plain", 1, 1, 0, null, null, null, null, null, null];
  const settlements = [{ id: "plain", fence: 1, to: "completed" }];
  const plain = { who: "a", params: {}, at: 1_000 };
  return [
    { ...plain, verb: "instances.announce", notes: [["instance+", 1, "host:11:boot"]] },
    {
      ...{ ...plain, verb: "lane" },
      notes: [
        ["lane+", 1, "default", "quick"],
        ["policy+", 1, 1_000, 60_000, 3, 0],
      ],
    },
    {
      ...{ ...plain, verb: "enqueue.runs" },
      notes: [
        ["run+", ...born],
        ["ready+", "plain", 0, 0, 0, 0, 0, 0],
      ],
    },
    claimOf(1),
    {
      ...{ who: "a", verb: "claims.exchange", at: 1_200 },
      params: { holder: 1, limit: 0, wantsSuspect: false, settlements },
      notes: [
        ["lease-", 1, '["plain"]'],
        ["outcome+", "plain", 1, 1, 1, 1, JSON.stringify({ run: "plain", fence: 1, attempt: 1 })],
      ],
    },
    { ...plain, verb: "schedules.create", notes: [["schedule+", ...schedule(1_000)]] },
    {
      ...{ ...plain, verb: "schedules.write", at: 2_000 },
      notes: [
        ["run+", "ticked", 1, 1, 1, 7, 2_000, null, null, null, null],
        ["ready+", "ticked", 0, 0, 0, 0, 0, 0],
        ["tick+", 7, 2_000, 2_000, 1, 0, 0, "ticked", 1, null],
        ["schedule~", ...schedule(2_000)],
      ],
    },
  ];
}
