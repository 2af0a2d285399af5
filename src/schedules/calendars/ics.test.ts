// Events of .ics files as excluded times, and what of such files is refused.

import { expect, test } from "vitest";
import { ConfigurationError } from "../../shared/errors.js";
import { requireZone } from "../cron/zone.js";
import { eventSources, readIcs } from "./ics.js";
import { firstOfAll, onClockOf } from "./windows.js";

function file(...events: string[]): string {
  const wrapped = events.map((each) => `BEGIN:VEVENT\n${each}\nEND:VEVENT`);
  return ["BEGIN:VCALENDAR", "VERSION:2.0", ...wrapped, "END:VCALENDAR", ""]
    .join("\n")
    .replaceAll("\n", "\r\n");
}

/** The first excluded spans after the instant, in UTC. */
function spans(text: string, from: string, count = 10, zoneName = "Europe/Paris"): string[] {
  const zone = requireZone(zoneName, "timezone");
  const { wall, instants } = eventSources(JSON.parse(JSON.stringify(readIcs(text, "ics"))), zone);
  const sources = [...wall.map((each) => onClockOf(zone, each)), ...instants];
  const found: string[] = [];
  let fromMs = Date.parse(`${from}T00:00:00Z`);
  const untilMs = fromMs + 20 * 366 * 86_400_000;
  const show = (ms: number) => new Date(ms).toISOString().slice(0, 16);
  while (found.length < count) {
    const span = firstOfAll(sources, { fromMs, untilMs });
    if (span === null) break;
    found.push(`${show(span.startMs)} ${show(span.endMs)} ${span.words}`);
    fromMs = span.endMs;
  }
  return found;
}

function refused(text: string): string {
  try {
    readIcs(text, "ics");
  } catch (error) {
    if (error instanceof ConfigurationError) return error.message;
    throw error;
  }
  throw new Error("It was accepted.");
}

test("whole days, UTC, a zone of its own, floating; folded and escaped", () => {
  const text = file(
    "DTSTART;VALUE=DATE:20261225\nDTEND;VALUE=DATE:20261227\nSUMMARY:Christ\n mas\\, both days",
    "DTSTART:20260105T120000Z\nDTEND:20260105T130000Z\nSUMMARY:UTC\nBEGIN:VALARM\nDTSTART:x\nEND:VALARM",
    'DTSTART;TZID="America/New_York":20260106T120000\nDURATION:PT1H30M\nSUMMARY:New York',
    "DTSTART:20260107T120000\nDTEND:20260107T130000\nSUMMARY:Floating",
    "DTSTART;VALUE=DATE:20260110",
    "DTSTART:20260111T120000Z\nSUMMARY:Takes no time",
  );
  expect(spans(text, "2026-01-01")).toEqual([
    '2026-01-05T12:00 2026-01-05T13:00 event "UTC"',
    '2026-01-06T17:00 2026-01-06T18:30 event "New York"',
    '2026-01-07T11:00 2026-01-07T12:00 event "Floating"',
    '2026-01-09T23:00 2026-01-10T23:00 event "without a summary"',
    '2026-12-24T23:00 2026-12-26T23:00 event "Christmas, both days"',
  ]);
});

test("cancelled and transparent events, to-dos and time zones are ignored", () => {
  const other = "BEGIN:VTODO\nDTSTART:x\nEND:VTODO\nBEGIN:VTIMEZONE\nTZID:X\nEND:VTIMEZONE";
  const text = file(
    "DTSTART:20260105T120000Z\nDURATION:PT1H\nSTATUS:CANCELLED",
    "DTSTART:20260105T120000Z\nDURATION:PT1H\nTRANSP:TRANSPARENT",
  ).replace("VERSION:2.0", other);
  expect(readIcs(text, "ics")).toEqual([]);
});

const REPEATED: [what: string, event: string, from: string, starts: string[]][] = [
  [
    "every year",
    "DTSTART;VALUE=DATE:20100501\nRRULE:FREQ=YEARLY",
    "2026-01-01",
    ["2026-04-30T22:00", "2027-04-30T22:00", "2028-04-30T22:00"],
  ],
  [
    "every leap day",
    "DTSTART:20240229T000000Z\nDURATION:P1D\nRRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29",
    "2026-01-01",
    ["2028-02-29T00:00", "2032-02-29T00:00", "2036-02-29T00:00"],
  ],
  [
    "every month that has a 31st",
    "DTSTART:20260131T000000Z\nDURATION:PT1H\nRRULE:FREQ=MONTHLY;COUNT=3",
    "2026-01-01",
    ["2026-01-31T00:00", "2026-03-31T00:00", "2026-05-31T00:00"],
  ],
  [
    "every second week, on two days",
    "DTSTART:20260106T000000Z\nDURATION:PT1H\nRRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU;WKST=MO",
    "2026-01-01",
    ["2026-01-06T00:00", "2026-01-11T00:00", "2026-01-20T00:00"],
  ],
  [
    "the same, where weeks begin on Sunday",
    "DTSTART:20260106T000000Z\nDURATION:PT1H\nRRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU;WKST=SU",
    "2026-01-01",
    ["2026-01-06T00:00", "2026-01-18T00:00", "2026-01-20T00:00"],
  ],
  [
    "every third day until a date, which counts",
    "DTSTART:20260101T120000Z\nDURATION:PT1H\nRRULE:FREQ=DAILY;INTERVAL=3;UNTIL=20260107",
    "2026-01-01",
    ["2026-01-01T12:00", "2026-01-04T12:00", "2026-01-07T12:00"],
  ],
  [
    "local time through a change of the clocks",
    "DTSTART;TZID=Europe/Berlin:20260327T090000\nDURATION:PT1H\nRRULE:FREQ=DAILY;UNTIL=20260330T070000Z",
    "2026-01-01",
    ["2026-03-27T08:00", "2026-03-28T08:00", "2026-03-29T07:00", "2026-03-30T07:00"],
  ],
  [
    "a time that the clocks jump over, by the offset before",
    "DTSTART;TZID=Europe/Berlin:20260328T023000\nDURATION:PT10M\nRRULE:FREQ=DAILY;COUNT=3",
    "2026-01-01",
    ["2026-03-28T01:30", "2026-03-29T01:30", "2026-03-30T00:30"],
  ],
  [
    "without its exceptions",
    "DTSTART;TZID=Europe/Berlin:20260101T090000\nDURATION:PT1H\nRRULE:FREQ=DAILY;COUNT=5\n" +
      "EXDATE;TZID=Europe/Berlin:20260102T090000,20260104T090000\nEXDATE:20260103T080000Z",
    "2026-01-01",
    ["2026-01-01T08:00", "2026-01-05T08:00"],
  ],
];

test.each(REPEATED)("%s", (_, event, from, starts) => {
  const found = spans(file(event), from, Math.max(3, starts.length));
  expect(found.map((each) => each.slice(0, 16))).toEqual(starts);
});

test("longer than its interval, it excludes without a hole", () => {
  const event = "DTSTART:20260101T000000Z\nDURATION:P3D\nRRULE:FREQ=DAILY";
  expect(spans(file(event), "2026-06-01", 2)).toEqual([
    '2026-05-30T00:00 2026-06-02T00:00 event "without a summary"',
    '2026-05-31T00:00 2026-06-03T00:00 event "without a summary"',
  ]);
});

test("an occurrence that was moved is excluded where it went", () => {
  const text = file(
    "UID:a\nDTSTART:20260101T090000Z\nDURATION:PT1H\nRRULE:FREQ=DAILY;COUNT=3\nSUMMARY:Daily",
    "UID:a\nRECURRENCE-ID:20260102T090000Z\nDTSTART:20260102T150000Z\nDURATION:PT1H\nSUMMARY:Moved",
    "UID:a\nRECURRENCE-ID:20260103T090000Z\nDTSTART:20260103T090000Z\nSTATUS:CANCELLED",
  );
  expect(spans(text, "2026-01-01")).toEqual([
    '2026-01-01T09:00 2026-01-01T10:00 event "Daily"',
    '2026-01-02T15:00 2026-01-02T16:00 event "Moved"',
  ]);
});

const START = "SUMMARY:Party\nDTSTART:20260101T000000Z\nDURATION:PT1H";
const REFUSED: [text: string, problem: string][] = [
  ["", "ics: must be the text of an .ics file; this one is empty."],
  ["hello", "has no property in line 1"],
  ["BEGIN:VEVENT\nEND:VEVENT", "must be inside BEGIN:VCALENDAR"],
  ["BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VCALENDAR", "ends a component in line 3 that is not open"],
  ["BEGIN:VCALENDAR\nBEGIN:VEVENT", "ends before END:VEVENT"],
  ["x".repeat(1_000_001), "must have at most 1000000 characters"],
  [file("SUMMARY:Party"), 'ics: event "Party" in line 3: it has no DTSTART.'],
  [file("DTSTART:20260230"), "its DTSTART must be a time such as"],
  [file("DTSTART:20260101T250000"), "its DTSTART must be a time such as"],
  [
    file("DTSTART;TZID=W. Europe Standard Time:20260101T000000"),
    "its DTSTART has a TZID that must be an IANA time zone",
  ],
  [file("DTSTART:20260102T000000Z\nDTEND:20260101T000000Z"), "it ends before it begins"],
  [file("DTSTART:20260102\nDTEND:20260102"), "it ends before it begins"],
  [file("DTSTART:20260102\nDTEND:20260103T000000Z"), "its DTEND must be of the same kind"],
  [file("DTSTART:20260102T000000Z\nDTEND:20260103T000000"), "its DTEND must be of the same kind"],
  [file("DTSTART:20260102T000000Z\nDURATION:-PT1H"), "its DURATION must be a duration such as"],
  [file("DTSTART:20260102\nDURATION:PT1H"), "its DURATION must be of whole days"],
  [file(`${START}\nDTEND:20260103T000000Z`), "it has both DTEND and DURATION"],
  [file(`${START}\nDURATION:PT2H`), "it has DURATION twice"],
  [file(`${START}\nRDATE:20260103T000000Z`), "RDATE is not supported"],
  [file(`${START}\nEXRULE:FREQ=DAILY`), "EXRULE is not supported"],
  [file(`${START}\nRECURRENCE-ID;RANGE=THISANDFUTURE:20260103T000000Z`), "RANGE is not supported"],
  [file(`${START}\nRRULE:FREQ=HOURLY`), "its RRULE must have FREQ=DAILY"],
  [
    file(`${START}\nRRULE:FREQ=DAILY;BYSETPOS=1`),
    'event "Party" in line 3: its RRULE has BYSETPOS, which is not supported',
  ],
  [
    file(`${START}\nRRULE:FREQ=YEARLY;BYDAY=4TH`),
    "BYDAY, which is supported with FREQ=WEEKLY only",
  ],
  [file(`${START}\nRRULE:FREQ=WEEKLY;BYDAY=1TH`), "a BYDAY that is no list of weekdays"],
  [
    file(`${START}\nRRULE:FREQ=WEEKLY;BYDAY=MO`),
    "a BYDAY without the weekday on which the event begins",
  ],
  [file(`${START}\nRRULE:FREQ=YEARLY;BYMONTH=2`), "BYMONTH, which is supported only"],
  [file(`${START}\nRRULE:FREQ=YEARLY;BYMONTHDAY=1`), "BYMONTHDAY, which is supported only"],
  [file(`${START}\nRRULE:FREQ=DAILY;INTERVAL=0`), "an INTERVAL from 1"],
  [file(`${START}\nRRULE:FREQ=DAILY;COUNT=0`), "a COUNT from 1"],
  [file(`${START}\nRRULE:FREQ=DAILY;COUNT=2;UNTIL=20270101`), "both UNTIL and COUNT"],
  [file(`${START}\nRRULE:FREQ=DAILY;UNTIL=20250101`), "an UNTIL before the start"],
  [file(`${START}\nRRULE:FREQ=DAILY;UNTIL=soon`), "an UNTIL that must be a time"],
  [
    file(`${START}\nRRULE:FREQ=DAILY\nEXDATE;VALUE=DATE:20260103`),
    "its EXDATE must be of the same kind",
  ],
];

test.each(REFUSED)("%.80j is refused", (text, problem) => {
  const message = refused(text);
  expect(message).toContain(problem);
  expect(message.length).toBeLessThan(600);
});

test("limits hold together: events, counts, problems", () => {
  const counted = `${START}\nRRULE:FREQ=MONTHLY;COUNT=10000`;
  expect(refused(file(...new Array(21).fill(counted)))).toContain("a COUNT too many");
  const many = "BEGIN:VEVENT\nDTSTART:20260101\nEND:VEVENT\n".repeat(10_001);
  expect(refused(`BEGIN:VCALENDAR\n${many}END:VCALENDAR`)).toContain("at most 10000 events");
  expect(refused(file(...new Array(100).fill("SUMMARY:x"))).split("\n")).toHaveLength(20);
});
