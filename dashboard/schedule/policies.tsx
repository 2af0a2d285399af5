// The policies of a schedule in words.

import type { ReactNode } from "react";
import type { Schedule } from "../api/wire.js";
import { spaced } from "../shared/format.js";
import { Facts, Panel } from "../shared/panel.js";
import { Time } from "../shared/time.js";

const OVERLAP: Readonly<Record<string, string>> = {
  skip: "A tick is skipped while an earlier run is live.",
  queue: "One run waits while an earlier run is live; more are skipped.",
  allow: "Runs may overlap.",
  replace: "The earlier run is cancelled for the new one.",
};
const MISSED: Readonly<Record<string, string>> = {
  latest: "After downtime, only the most recent missed run is executed",
  all: "After downtime, missed runs are executed one after the other, oldest first",
  skip: "After downtime, missed runs are not executed",
};

/** `{ above: 0.03, over: "1d" }` is "above 0.03, over 1d"; a disabled rule is "off". */
function ruleWords(rule: unknown): string {
  if (rule === false) return "off";
  if (typeof rule !== "object" || rule === null) return String(rule);
  return Object.entries(rule)
    .map(([name, value]) => `${spaced(name)} ${String(value)}`)
    .join(", ");
}

export function Policies({ schedule }: { readonly schedule: Schedule }) {
  const { missed, dst } = schedule;
  const within = missed.within === null ? "" : `, within ${missed.within}`;
  const limit = missed.run === "all" ? `, at most ${missed.limit}` : "";
  const ofRuns: (readonly [string, ReactNode])[] = [
    ["Overlap", OVERLAP[schedule.overlap] ?? schedule.overlap],
    ["Missed", `${MISSED[missed.run] ?? missed.run}${within}${limit}.`],
    ["On time", `Up to ${schedule.grace} after its time.`],
  ];
  const ofCheckIns: (readonly [string, ReactNode])[] = [
    ["Check-in", `Waited for up to ${schedule.grace} after its time, or after its start.`],
    ["Without one", "The tick is missed, and an alert is opened until one comes."],
  ];
  const facts: (readonly [string, ReactNode])[] = [
    ...(schedule.monitor ? ofCheckIns : ofRuns),
    [
      "After a failure",
      schedule.afterFailure === null ? null : `Ticks within ${schedule.afterFailure} are skipped.`,
    ],
    ["Held until", schedule.heldUntil === null ? null : <Time key="h" at={schedule.heldUntil} />],
    [
      "Clock changes",
      dst === null ? null : `Skipped hour: ${dst.gap}. Repeated hour: ${dst.overlap}.`,
    ],
    ["From", schedule.from === null ? null : <Time key="f" at={schedule.from} style="full" />],
    ["Until", schedule.until === null ? null : <Time key="u" at={schedule.until} style="full" />],
    ["Excluded dates", schedule.exclude.length === 0 ? null : schedule.exclude.join(", ")],
    ["Calendars", schedule.calendars.length === 0 ? null : schedule.calendars.join(", ")],
    ["Queue", schedule.queue],
    ["Priority", schedule.priority === null ? null : String(schedule.priority)],
    ["Tags", schedule.tags.length === 0 ? null : schedule.tags.join(", ")],
    [
      "Alerts",
      schedule.alerts === null
        ? null
        : Object.entries(schedule.alerts).map(([kind, rule]) => (
            <div key={kind}>{`${spaced(kind)}: ${ruleWords(rule)}`}</div>
          )),
    ],
    [
      "Declared",
      schedule.source === "code"
        ? `in code${schedule.app === null ? "" : ` of the app ${schedule.app}`}${schedule.release === null ? "" : `, release ${schedule.release}`}`
        : "through the API",
    ],
    [
      "Input",
      schedule.monitor ? null : (
        <code key="i" className="font-mono text-xs break-all">
          {JSON.stringify(schedule.input)}
        </code>
      ),
    ],
  ];
  return (
    <Panel title="Policies">
      <Facts facts={facts.filter(([, value]) => value !== null)} />
    </Panel>
  );
}
