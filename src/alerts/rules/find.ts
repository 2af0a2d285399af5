// Finds the conditions to alert of in the observed facts, rule by rule. A schedule's own rules replace the general ones;
// their alerts are about the schedule, not its job. Pure.

import type { AlertSubject, Finding } from "./alert.js";
import * as messages from "./messages.js";
import type { AlertObservation, ObservationParams, ObservedSchedule } from "./observation.js";
import type { AlertRules, ScheduleAlertRules } from "./rules.js";

/** A tick that is this late is stuck if an instance has polled. */
export const STUCK_AFTER_MS = 5 * 60_000;
/** An instance with the scheduler on polls far more often than this. */
const POLLED_WITHIN_MS = 60_000;

/** Failures in a row are counted up to here, even if a rule needs fewer. */
const COUNTED_MIN = 20;

type Kind = keyof ScheduleAlertRules;

/** The facts that these rules need, those of schedules included. */
export function observationParams(
  rules: AlertRules,
  schedules: readonly Pick<ObservedSchedule, "name" | "rules">[],
): ObservationParams {
  const own = schedules.flatMap(({ name, rules: its }) => (its ? [{ name, its }] : []));
  const least = (...values: readonly (number | null | undefined)[]) => {
    const given = values.filter((each) => each !== null && each !== undefined);
    return given.length === 0 ? null : Math.min(...given);
  };
  const windows = [rules.reclaimed, ...own.map(({ its }) => its.reclaimed)];
  const slows = [rules.slow, ...own.map(({ its }) => its.slow)];
  const depth = streakDepth(rules, schedules);
  return {
    silentMs: least(rules.stale, ...own.map(({ its }) => its.stale)),
    ranMs: least(...slows.flatMap((slow) => [slow?.perItemMs, slow?.totalMs])),
    reclaimedMs: Math.max(...windows.map((each) => each ?? 0)) || null,
    isRunningCounted: rules.running !== null,
    runningOf: own.flatMap(({ name, its }) => (its.running ? [name] : [])),
    unattendedMs: rules.noWorker,
    skewMs: rules.clockSkew,
    transactionMs: rules.slowClaims,
    waitedMs: rules.waiting_too_long,
    ratesOf: own.flatMap(({ name, its }) =>
      its.failureRate ? [{ schedule: name, overMs: its.failureRate.overMs }] : [],
    ),
    skips: skipDepth(
      rules,
      own.map(({ its }) => its),
    ),
    ends:
      depth === null
        ? null
        : {
            depth,
            of: rules.consecutiveFailures
              ? null
              : own.flatMap(({ name, its }) => (its.consecutiveFailures ? [name] : [])),
          },
  };
}

/** How many of the newest ticks are read to count failures in a row; null: no rule needs them. */
function streakDepth(
  rules: AlertRules,
  schedules: readonly Pick<ObservedSchedule, "rules">[],
): number | null {
  const depths = [rules, ...schedules.map(({ rules: its }) => its ?? {})].flatMap(
    ({ consecutiveFailures: each }: Partial<ScheduleAlertRules>) =>
      each ? [Math.max(each.after, each.pauseAfter ?? 0)] : [],
  );
  // Five more, as live and cancelled runs are skipped.
  return depths.length === 0 ? null : Math.max(COUNTED_MIN, ...depths) + 5;
}

function skipDepth(rules: AlertRules, own: readonly Partial<ScheduleAlertRules>[]): number | null {
  const depths = [rules, ...own].flatMap(({ skipped }) => (skipped ? [skipped] : []));
  return depths.length === 0 ? null : Math.max(COUNTED_MIN, ...depths);
}

export function findAlerts(observed: AlertObservation, rules: AlertRules): readonly Finding[] {
  const own = new Map(observed.schedules.map(({ name, rules: its }) => [name, its ?? {}]));
  const ruleOf = <K extends Kind>(kind: K, schedule: string | null): ScheduleAlertRules[K] => {
    const its = schedule === null ? undefined : own.get(schedule)?.[kind];
    return its === undefined ? rules[kind] : (its as ScheduleAlertRules[K]);
  };
  const hasOwn = (kind: Kind, schedule: string | null) =>
    schedule !== null && own.get(schedule)?.[kind] !== undefined;
  const seen: Seen = { observed, rules, ruleOf, hasOwn };
  return [
    ...stale(seen),
    ...reclaimed(seen),
    ...slow(seen),
    ...running(seen),
    ...failureRate(seen),
    ...schedules(seen),
    ...ticks(seen),
    ...streaks(seen),
    ...skipped(seen),
    ...waitingTooLong(observed),
    ...databaseFindings(seen),
  ];
}

type Seen = {
  readonly observed: AlertObservation;
  readonly rules: AlertRules;
  readonly ruleOf: <K extends Kind>(kind: K, schedule: string | null) => ScheduleAlertRules[K];
  readonly hasOwn: (kind: Kind, schedule: string | null) => boolean;
};

/** The schedule if it has a rule of its own, else its job. */
function subjectOf(
  { hasOwn }: Seen,
  kind: Kind,
  { job, schedule }: { readonly job: string; readonly schedule: string | null },
): AlertSubject {
  return hasOwn(kind, schedule) && schedule !== null
    ? { type: "schedule", name: schedule }
    : { type: "job", name: job };
}

function stale(seen: Seen): readonly Finding[] {
  const { observed, ruleOf } = seen;
  const silent = observed.runs.filter((run) => {
    const afterMs = ruleOf("stale", run.schedule);
    return afterMs !== null && run.silentMs >= afterMs;
  });
  return bySubject(silent, (run) => subjectOf(seen, "stale", run)).map(([subject, runs]) => ({
    kind: "stale",
    subject,
    message: messages.stale(runs),
    evidence: { runs: runs.slice(0, messages.SHOWN_MAX), count: runs.length },
  }));
}

function reclaimed(seen: Seen): readonly Finding[] {
  const { observed, ruleOf } = seen;
  const recent = observed.reclaims.filter((run) => {
    const withinMs = ruleOf("reclaimed", run.schedule);
    return withinMs !== null && run.agoMs <= withinMs;
  });
  return bySubject(recent, (run) => subjectOf(seen, "reclaimed", run)).map(([subject, runs]) => ({
    kind: "reclaimed",
    subject,
    message: messages.reclaimed(runs),
    evidence: { runs: runs.slice(0, messages.SHOWN_MAX), count: runs.length },
  }));
}

function slow(seen: Seen): readonly Finding[] {
  const { observed, ruleOf } = seen;
  const late = observed.runs.filter(({ schedule, ranMs, items }) => {
    const rule = ruleOf("slow", schedule);
    if (!rule) return false;
    const { totalMs, perItemMs } = rule;
    // The time limit applies to the item in progress too.
    const isOverItems = perItemMs !== null && ranMs > perItemMs * (items + 1);
    return isOverItems || (totalMs !== null && ranMs > totalMs);
  });
  return bySubject(late, (run) => subjectOf(seen, "slow", run)).map(([subject, runs]) => ({
    kind: "slow",
    subject,
    message: messages.slow(runs),
    evidence: { runs: runs.slice(0, messages.SHOWN_MAX), count: runs.length },
  }));
}

function running({ observed, rules, ruleOf }: Seen): readonly Finding[] {
  const { total, bySchedule } = observed.running;
  const found: Finding[] = [];
  if (rules.running && total > rules.running.above)
    found.push({
      kind: "running",
      subject: { type: "database", name: "runs" },
      message: messages.running(total, rules.running.above),
      evidence: { running: total, above: rules.running.above },
    });
  for (const [name, count] of Object.entries(bySchedule)) {
    const rule = ruleOf("running", name);
    if (!rule || count <= rule.above) continue;
    found.push({
      kind: "running",
      subject: { type: "schedule", name },
      message: messages.running(count, rule.above),
      evidence: { running: count, above: rule.above },
    });
  }
  return found;
}

function failureRate({ observed, rules, ruleOf }: Seen): readonly Finding[] {
  const judge = (
    type: "job" | "schedule",
    rates: AlertObservation["jobRates"],
    rule: (name: string) => AlertRules["failureRate"],
  ) =>
    rates.flatMap(({ name, completed, failed }): Finding[] => {
      const bound = rule(name);
      const ended = completed + failed;
      if (!bound || failed === 0 || ended < bound.atLeast) return [];
      const rate = failed / ended;
      if (rate <= bound.above) return [];
      return [
        {
          kind: "failureRate",
          subject: { type, name },
          message: messages.failureRate({ failed, ended, ...bound }),
          evidence: { failed, ended, rate, above: bound.above, overMs: bound.overMs },
        },
      ];
    });
  return [
    ...judge("job", observed.jobRates, () => rules.failureRate),
    ...judge("schedule", observed.scheduleRates, (name) => ruleOf("failureRate", name)),
  ];
}

function schedules({ observed, ruleOf }: Seen): readonly Finding[] {
  const { now, schedulerPolledAt } = observed;
  const isPolled = schedulerPolledAt !== null && schedulerPolledAt > now - POLLED_WITHIN_MS;
  return observed.schedules.flatMap((schedule): Finding[] => {
    const { name, nextAt, isEnded, isPaused, brokenAt, brokenError } = schedule;
    const subject: AlertSubject = { type: "schedule", name };
    if (brokenAt !== null)
      return ruleOf("broken", name)
        ? [
            {
              kind: "broken",
              subject,
              message: messages.broken(brokenAt, brokenError),
              evidence: { brokenAt, error: brokenError },
            },
          ]
        : [];
    if (isPaused) return [];
    const evidence = { nextAt, schedulerPolledAt };
    const lateByMs = nextAt === null ? null : now - nextAt;
    const isLost = nextAt === null && !isEnded;
    const isStuck = isPolled && (isLost || (lateByMs !== null && lateByMs > STUCK_AFTER_MS));
    if (isStuck && ruleOf("stuck", name))
      return [{ kind: "stuck", subject, message: messages.stuck(nextAt, now), evidence }];
    const afterMs = ruleOf("silent", name);
    if (afterMs === null || nextAt === null || lateByMs === null || lateByMs < afterMs) return [];
    const message = messages.silent({ nextAt, now, schedulerPolledAt });
    return [{ kind: "silent", subject, message, evidence: { ...evidence, lateMs: lateByMs } }];
  });
}

function ticks({ observed, ruleOf }: Seen): readonly Finding[] {
  return observed.ticks.flatMap((tick): Finding[] => {
    const { schedule: name, reason, firstAt, lastAt, count, recordedAt } = tick;
    const kind = reason === "no_ping" ? "silent" : "stuck";
    if (ruleOf(kind, name) === null) return [];
    const evidence = { reason, firstAt, lastAt, count, recordedAt };
    return [{ kind, subject: { type: "schedule", name }, message: messages.tick(tick), evidence }];
  });
}

function streaks({ observed, rules, ruleOf }: Seen): readonly Finding[] {
  const depth = streakDepth(rules, observed.schedules) ?? 0;
  const bySchedule = bySubject(observed.ends, ({ schedule: name }) => ({ type: "schedule", name }));
  return bySchedule.flatMap(([subject, ends]): Finding[] => {
    const { name } = subject;
    const rule = ruleOf("consecutiveFailures", name);
    if (!rule) return [];
    const ended = ends.filter(({ status }) => status === "failed" || status === "completed");
    const good = ended.findIndex(({ status }) => status === "completed");
    const failures = good === -1 ? ended : ended.slice(0, good);
    const [newest] = failures;
    if (!newest || failures.length < rule.after) return [];
    const { at: tickAt, run, error } = newest;
    // Older ticks were not read: they may have failed too.
    const isAtLeast = good === -1 && ends.length >= depth;
    const shouldPause = rule.pauseAfter !== null && failures.length >= rule.pauseAfter;
    return [
      {
        kind: "consecutiveFailures",
        subject,
        message: messages.streak({ count: failures.length, isAtLeast }, newest),
        evidence: {
          failures: failures.length,
          isAtLeast,
          tickAt,
          run,
          error: messages.errorOf(error),
          shouldPause,
        },
      },
    ];
  });
}

function skipped({ observed, ruleOf }: Seen): readonly Finding[] {
  const bySchedule = bySubject(observed.skips, ({ schedule: name }) => ({
    type: "schedule",
    name,
  }));
  return bySchedule.flatMap(([subject, rows]): Finding[] => {
    const after = ruleOf("skipped", subject.name);
    const other = rows.findIndex(({ isSkip }) => !isSkip);
    const inARow = other === -1 ? rows : rows.slice(0, other);
    const ticks = inARow.reduce((sum, { count }) => sum + count, 0);
    const [newest] = inARow;
    if (after === null || !newest || ticks < after) return [];
    const { lastAt, isWaiting } = newest;
    const isAtLeast = other === -1;
    return [
      {
        kind: "skipped",
        subject,
        message: messages.skipped({ ticks, isAtLeast, lastAt, isWaiting }),
        evidence: { ticks, isAtLeast, lastAt, isWaiting },
      },
    ];
  });
}

function waitingTooLong({ waits }: AlertObservation): readonly Finding[] {
  return bySubject(waits, ({ job }) => ({ type: "job", name: job })).map(([subject, runs]) => ({
    kind: "waiting_too_long",
    subject,
    message: messages.waitingTooLong(runs),
    evidence: { runs: runs.slice(0, messages.SHOWN_MAX), count: runs.length },
  }));
}

function databaseFindings({ observed, rules }: Seen): readonly Finding[] {
  const { now, jobs, skews, culprits } = observed;
  const unattended = bySubject(jobs, ({ job }) => ({ type: "job", name: job }));
  return [
    ...unattended.map(([subject, lanes]): Finding => {
      const runs = lanes.reduce((sum, lane) => sum + lane.runs, 0);
      const oldestDueAt = Math.min(...lanes.map((lane) => lane.oldestDueAt));
      const queues = lanes.map(({ queue }) => queue);
      const message = messages.noWorker({ runs, queues, waitedMs: now - oldestDueAt });
      return { kind: "noWorker", subject, message, evidence: { runs, queues, oldestDueAt } };
    }),
    ...skews.map(
      ({ instance, skewMs }): Finding => ({
        kind: "clockSkew",
        subject: { type: "instance", name: instance },
        message: messages.clockSkew(skewMs, rules.clockSkew ?? 0),
        evidence: { skewMs },
      }),
    ),
    ...steppedBack(observed, rules),
    ...(culprits.length === 0
      ? []
      : [
          {
            kind: "slowClaims",
            subject: { type: "database", name: "claims" },
            message: messages.slowClaims(culprits),
            evidence: { culprits: culprits.slice(0, messages.SHOWN_MAX), count: culprits.length },
          } satisfies Finding,
        ]),
  ];
}

/** No schedule fires until the clock has caught up with the newest recorded tick. */
function steppedBack(
  { now, recordedUntil }: AlertObservation,
  { clockSkew }: AlertRules,
): Finding[] {
  const steppedMs = recordedUntil === null ? 0 : recordedUntil - now;
  if (clockSkew === null || recordedUntil === null || steppedMs <= clockSkew) return [];
  return [
    {
      kind: "clockSkew",
      subject: { type: "database", name: "clock" },
      message: messages.steppedBack(steppedMs, recordedUntil),
      evidence: { steppedMs, recordedUntil },
    },
  ];
}

function bySubject<Row>(
  rows: readonly Row[],
  subjectOfRow: (row: Row) => AlertSubject,
): readonly (readonly [AlertSubject, readonly Row[]])[] {
  const groups = new Map<string, [AlertSubject, Row[]]>();
  for (const row of rows) {
    const subject = subjectOfRow(row);
    const key = `${subject.type} ${subject.name}`;
    const group = groups.get(key);
    if (group) group[1].push(row);
    else groups.set(key, [subject, [row]]);
  }
  return [...groups.values()];
}
