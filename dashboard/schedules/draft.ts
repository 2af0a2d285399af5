// A schedule while it is typed: every member as text, and its conversion for the API. Pure.

import type { BodyOf, Schedule } from "../api/wire.js";

export type ScheduleDraft = {
  readonly name: string;
  readonly job: string;
  /** No job runs: another system checks in. */
  readonly monitor: boolean;
  readonly kind: "cron" | "every" | "at";
  readonly cron: string;
  readonly timezone: string;
  readonly every: string;
  readonly at: string;
  readonly from: string;
  readonly until: string;
  readonly exclude: string;
  readonly calendars: string;
  readonly input: string;
  readonly overlap: string;
  readonly missed: string;
  readonly within: string;
  readonly limit: string;
  readonly afterFailure: string;
  readonly grace: string;
  readonly queue: string;
  readonly priority: string;
  readonly tags: string;
  readonly gap: string;
  readonly overlapClock: string;
  /** Its own rules as JSON; empty: the general rules. */
  readonly alerts: string;
};

export const NEW_DRAFT: ScheduleDraft = {
  name: "",
  job: "",
  monitor: false,
  kind: "cron",
  cron: "0 2 * * *",
  timezone: "UTC",
  every: "10m",
  at: "",
  from: "",
  until: "",
  exclude: "",
  calendars: "",
  input: "null",
  overlap: "skip",
  missed: "latest",
  within: "",
  limit: "",
  afterFailure: "",
  grace: "",
  queue: "",
  priority: "",
  tags: "",
  gap: "",
  overlapClock: "",
  alerts: "",
};

export function draftOf(schedule: Schedule): ScheduleDraft {
  const { missed, dst } = schedule;
  return {
    ...NEW_DRAFT,
    name: schedule.name,
    job: schedule.monitor ? "" : schedule.job,
    monitor: schedule.monitor,
    kind: schedule.cron !== null ? "cron" : schedule.every !== null ? "every" : "at",
    cron: schedule.cron ?? NEW_DRAFT.cron,
    timezone: schedule.timezone,
    every: schedule.every ?? NEW_DRAFT.every,
    at: schedule.at ?? "",
    from: schedule.from ?? "",
    until: schedule.until ?? "",
    exclude: schedule.exclude.join(", "),
    calendars: schedule.calendars.join(", "),
    input: JSON.stringify(schedule.input, null, 2),
    overlap: schedule.overlap,
    missed: missed.run,
    within: missed.within ?? "",
    limit: String(missed.limit),
    afterFailure: schedule.afterFailure ?? "",
    grace: schedule.grace,
    queue: schedule.queue ?? "",
    priority: schedule.priority === null ? "" : String(schedule.priority),
    tags: schedule.tags.join(", "),
    gap: dst?.gap ?? "",
    overlapClock: dst?.overlap ?? "",
    alerts: schedule.alerts === null ? "" : JSON.stringify(schedule.alerts, null, 2),
  };
}

type Body = BodyOf<"putSchedule">;

/** Empty fields are left out: the server's defaults apply. */
export function bodyOf(draft: ScheduleDraft): {
  readonly value: Body;
  readonly problem: string | null;
} {
  const input = draft.monitor ? NOTHING : read("input", draft.input);
  const alerts = read("alerts", draft.alerts);
  const ofRuns = { job: draft.job, input: input.value ?? null, ...policiesOf(draft) };
  return {
    value: {
      ...(draft.monitor ? { monitor: true } : ofRuns),
      ...whenOf(draft),
      ...(draft.grace === "" ? {} : { grace: draft.grace }),
      ...listed("tags", draft.tags),
      ...(alerts.value === undefined ? {} : { alerts: alerts.value as Body["alerts"] }),
    },
    problem: input.problem ?? alerts.problem,
  };
}

const NOTHING = { value: undefined, problem: null };

/** An empty field is undefined. */
function read(
  name: string,
  text: string,
): { readonly value: unknown; readonly problem: string | null } {
  if (text.trim() === "") return NOTHING;
  try {
    return { value: JSON.parse(text), problem: null };
  } catch (error) {
    const problem = `"${name}" is not JSON: ${error instanceof Error ? error.message : error}`;
    return { value: undefined, problem };
  }
}

export function whenOf(draft: ScheduleDraft): Omit<Body, "job"> {
  const { gap, overlapClock } = draft;
  const dst = { ...(gap ? { gap } : {}), ...(overlapClock ? { overlap: overlapClock } : {}) };
  return {
    ...(draft.kind === "cron" ? { cron: draft.cron } : {}),
    ...(draft.kind === "every" ? { every: draft.every } : {}),
    ...(draft.kind === "at" ? { at: draft.at } : {}),
    ...(draft.timezone.trim() === "" ? {} : { timezone: draft.timezone.trim() }),
    ...(draft.kind === "cron" && Object.keys(dst).length > 0 ? { dst } : {}),
    ...(draft.from === "" ? {} : { from: draft.from }),
    ...(draft.until === "" ? {} : { until: draft.until }),
    ...listed("exclude", draft.exclude),
    ...listed("calendars", draft.calendars),
  };
}

function policiesOf(draft: ScheduleDraft): Omit<Body, "job"> {
  const { missed, within, limit } = draft;
  return {
    overlap: draft.overlap,
    missed: {
      run: missed,
      ...(within === "" ? {} : { within }),
      ...(limit === "" ? {} : { limit: Number(limit) }),
    },
    ...(draft.afterFailure === "" ? {} : { afterFailure: draft.afterFailure }),
    ...(draft.queue === "" ? {} : { queue: draft.queue }),
    ...(draft.priority === "" ? {} : { priority: Number(draft.priority) }),
  };
}

function listed<Name extends string>(
  name: Name,
  text: string,
): { readonly [N in Name]?: string[] } {
  const parts = text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
  return (parts.length === 0 ? {} : { [name]: parts }) as { readonly [N in Name]?: string[] };
}
