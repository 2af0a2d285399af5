// Shows states in fixed colours and never by colour alone: each state has a sign of its own.

import type { RunStatus, Schedule, TimelineTicks } from "../api/wire.js";

/** The outcome of a tick as the page draws it. */
export type Mark =
  | "ok"
  | "late"
  | "running"
  | "waiting"
  | "failed"
  | "cancelled"
  | "skipped"
  | "missed"
  | "planned"
  | "due";

export const MARK_WORDS: Readonly<Record<Mark, string>> = {
  ok: "fired",
  late: "late",
  running: "running",
  waiting: "waiting",
  failed: "failed",
  cancelled: "cancelled",
  skipped: "skipped",
  missed: "missed",
  planned: "planned",
  due: "due",
};

/** Of several outcomes in one place, the worst is shown. */
export const MARK_ORDER: readonly Mark[] = [
  "failed",
  "missed",
  "due",
  "running",
  "waiting",
  "late",
  "skipped",
  "cancelled",
  "ok",
  "planned",
];

export function markOf({
  outcome,
  reason,
  status,
}: Pick<TimelineTicks, "outcome" | "reason" | "status">): Mark {
  if (outcome === "skipped") return "skipped";
  if (outcome === "missed") return "missed";
  if (status === "failed") return "failed";
  if (status === "running") return "running";
  if (status === "pending") return "waiting";
  if (status === "cancelled") return "cancelled";
  return reason === "on_time" ? "ok" : "late";
}

export const REASON_WORDS: Readonly<Record<string, string>> = {
  on_time: "on time",
  late: "fired late",
  catch_up: "caught up",
  stuck_reset: "was stuck, restarted",
  overlap: "the previous run was still live",
  queue_full: "another run was waiting already",
  after_failure: "held back after a failure",
  paused: "paused",
  nobody: "no instance was running",
  too_old: "older than the limit for missed ticks",
  over_limit: "more than the limit to catch up",
  broken: "the schedule is broken",
  no_ping: "no check-in came",
};

const TONES = {
  ok: "text-ok-ink bg-ok/12",
  late: "text-late-ink bg-late/14",
  running: "text-running-ink bg-running/12",
  failed: "text-failed-ink bg-failed/10",
  skipped: "text-skipped-ink bg-skipped/18",
  missed: "text-missed-ink bg-missed/12",
  quiet: "text-muted bg-sunken",
} as const;
export type Tone = keyof typeof TONES;

const RUN_TONES: Readonly<Record<RunStatus, readonly [Tone, string]>> = {
  completed: ["ok", "✓"],
  failed: ["failed", "✕"],
  running: ["running", "▶"],
  pending: ["quiet", "◷"],
  cancelled: ["skipped", "⊘"],
};

export function Badge(props: {
  readonly tone: Tone;
  readonly sign?: string;
  readonly children: string;
}) {
  return (
    <span
      className={`inline-flex items-center gap-1 rounded px-1.5 py-px text-xs font-medium whitespace-nowrap ${TONES[props.tone]}`}
    >
      {props.sign === undefined ? null : (
        <span aria-hidden="true" className="text-[0.65rem]">
          {props.sign}
        </span>
      )}
      {props.children}
    </span>
  );
}

export function RunBadge({
  status,
  partial = false,
}: {
  readonly status: RunStatus;
  readonly partial?: boolean;
}) {
  const [tone, sign] = RUN_TONES[status];
  if (partial && status === "completed")
    return (
      <Badge tone="late" sign="◐">
        partly done
      </Badge>
    );
  return (
    <Badge tone={tone} sign={sign}>
      {status}
    </Badge>
  );
}

const SCHEDULE_TONES: Readonly<Record<Schedule["status"], readonly [Tone, string]>> = {
  active: ["ok", "●"],
  paused: ["skipped", "❙❙"],
  ended: ["quiet", "■"],
  broken: ["failed", "!"],
};

export function ScheduleBadge({ status }: { readonly status: Schedule["status"] }) {
  const [tone, sign] = SCHEDULE_TONES[status];
  return (
    <Badge tone={tone} sign={sign}>
      {status}
    </Badge>
  );
}
