// Types of what callers give, checked by the compiler and never run: a schedule has exactly one time and
// the input that its job needs, options may be undefined, and no input holds a Date.

import { z } from "zod";
import { type ClientOptions, createClient, type WorkOptions } from "../../src/client/index.js";
import type { HandlerOptions, SecretOptions } from "../../src/http/index.js";
import type * as api from "../../src/index.js";
import * as holdfastModule from "../../src/index.js";

const holdfast = new holdfastModule.Holdfast({ database: "sqlite::memory:" });
const needy = holdfast.job("needy", { input: z.object({ market: z.string() }), run: () => 1 });
const plain = holdfast.job("plain", { run: (input: { market: string }) => input.market });
const nullable = holdfast.job("nullable", { input: z.object({}).nullable(), run: () => 1 });
const idle = holdfast.job("idle", { run: () => 1 });
const cron = "0 9 * * *";

// ── a schedule has the input that its job needs ──────────────────────────────────────────────────

holdfast.schedule("a", needy, { cron, input: { market: "eu" } });
holdfast.schedule("a", plain, { cron, input: { market: "eu" } });
holdfast.schedule("a", nullable, { cron });
holdfast.schedule("a", idle, { cron });
holdfast.schedule("a", idle, { cron, input: 7 });
holdfast.schedule("a", "by-name", { cron });
// @ts-expect-error The schema of the job needs an input.
holdfast.schedule("a", needy, { cron });
// @ts-expect-error The handler of the job needs an input.
holdfast.schedule("a", plain, { cron });
// @ts-expect-error The input is of another type.
holdfast.schedule("a", needy, { cron, input: { market: 1 } });

export async function upserts() {
  await holdfast.schedules.upsert("a", { job: needy, cron, input: { market: "eu" } });
  await holdfast.schedules.upsert("a", { job: "by-name", cron });
  // @ts-expect-error The job needs an input.
  await holdfast.schedules.upsert("a", { job: needy, cron });
}

// ── exactly one of cron, every and at ────────────────────────────────────────────────────────────

holdfast.schedule("a", idle, { every: "10m" });
holdfast.schedule("a", idle, { at: new Date(0) });
holdfast.schedule("a", idle, { cron, every: undefined });
holdfast.schedule("a", { monitor: true, every: "1h", grace: "5m" });
// @ts-expect-error There is no time at all.
holdfast.schedule("a", idle, {});
// @ts-expect-error There is no time at all, only a zone.
holdfast.schedule("a", idle, { timezone: "Europe/Berlin" });
// @ts-expect-error Both a cron and an interval.
holdfast.schedule("a", idle, { cron, every: "10m" });
// @ts-expect-error Both a cron and one time.
holdfast.schedule("a", idle, { cron, at: "2030-01-31T09:00:00Z" });
// @ts-expect-error Both an interval and one time.
holdfast.schedule("a", idle, { every: "10m", at: "2030-01-31T09:00:00Z" });
// @ts-expect-error A monitor without a time.
holdfast.schedule("a", { monitor: true });
declare const perhaps: string | undefined;
// @ts-expect-error Perhaps there is no time.
holdfast.schedule("a", idle, { cron: perhaps });

const client = createClient({ url: "http://127.0.0.1:4780" });
export async function remoteUpserts() {
  await client.schedules.upsert("a", { job: "idle", every: "10m", timezone: "Europe/Berlin" });
  await client.schedules.upsert("a", { job: "idle", cron, at: undefined }, { ifVersion: 1 });
  await client.schedules.upsert("a", { monitor: true, at: "2030-01-31T09:00:00Z" });
  // @ts-expect-error There is no time at all.
  await client.schedules.upsert("a", { job: "idle" });
  // @ts-expect-error Both a cron and an interval.
  await client.schedules.upsert("a", { job: "idle", cron, every: "10m" });
}

// ── undefined is the same as left out, under exactOptionalPropertyTypes ──────────────────────────

declare const key: string | undefined;
export async function undefinedOptions() {
  await idle.enqueue(1, { key, delay: undefined, tags: undefined });
  holdfast.schedule("a", idle, { cron, timezone: key, queue: key });
  await holdfast.runs.list({ job: key, status: undefined, cursor: key });
}

/** The same options, where every member that may be left out is there and may be undefined. */
type Written<Options> = Options extends unknown
  ? {
      [Key in keyof Options]-?: object extends Pick<Options, Key>
        ? Options[Key] | undefined
        : Options[Key];
    }
  : never;
/** Fails to compile unless every optional member takes undefined. */
function takesUndefined<Options>(
  ..._: Written<Options> extends Options ? [] : ["a member does not take undefined"]
): void {}

takesUndefined<api.ActorOptions>();
takesUndefined<api.AlertListOptions>();
takesUndefined<api.AlertOptions>();
takesUndefined<api.AlertRuleOptions>();
takesUndefined<api.AroundOptions>();
takesUndefined<api.AuditListOptions>();
takesUndefined<api.BackfillOptions>();
takesUndefined<api.BatchOptions>();
takesUndefined<api.CalendarOptions>();
takesUndefined<api.CheckOptions>();
takesUndefined<api.ChildListOptions>();
takesUndefined<api.CleanupOptions>();
takesUndefined<api.CommitOptions>();
takesUndefined<api.ConcurrencyOptions>();
takesUndefined<api.ConsecutiveFailuresOptions>();
takesUndefined<api.EnqueueOptions>();
takesUndefined<api.ErrorsOptions>();
takesUndefined<api.EtcdLockOptions>();
takesUndefined<api.FailureRateOptions>();
takesUndefined<api.HealthOptions>();
takesUndefined<api.HeartbeatOptions>();
takesUndefined<api.HoldfastOptions>();
takesUndefined<api.HttpOptions>();
takesUndefined<api.HttpOriginOptions>();
takesUndefined<api.InstanceListOptions>();
takesUndefined<api.ItemListOptions>();
takesUndefined<api.ItemOptions<unknown>>();
takesUndefined<api.LockHistoryOptions>();
takesUndefined<api.LockListOptions>();
takesUndefined<api.LockOptions>();
takesUndefined<api.LogsOptions>();
takesUndefined<api.MetricsOptions>();
takesUndefined<api.MissedOptions>();
takesUndefined<api.PauseOptions>();
takesUndefined<api.PingOptions>();
takesUndefined<api.PlainJobOptions<string, number>>();
takesUndefined<api.ProgressOptions>();
takesUndefined<api.PruneOptions>();
takesUndefined<api.RateOptions>();
takesUndefined<api.ReceiverOptions>();
takesUndefined<api.RecoverOptions>();
takesUndefined<api.RedisLockOptions>();
takesUndefined<api.RepairOptions>();
takesUndefined<api.RetryOptions>();
takesUndefined<api.RunListOptions>();
takesUndefined<api.RunLogOptions>();
takesUndefined<api.ScheduleAlertOptions>();
takesUndefined<api.ScheduleListOptions>();
takesUndefined<api.ScheduleOptions>();
takesUndefined<api.ShellCommandOptions>();
takesUndefined<api.ShellOptions>();
takesUndefined<api.SlowOptions>();
takesUndefined<api.StartOptions>();
takesUndefined<api.StatsOptions>();
takesUndefined<api.TelemetryOptions>();
takesUndefined<api.TickListOptions>();
takesUndefined<api.TickOptions>();
takesUndefined<api.TriggerOptions>();
takesUndefined<api.UpsertAsked>();
takesUndefined<api.WorkerOptions>();
takesUndefined<api.WorkerTargetOptions>();
takesUndefined<HandlerOptions>();
takesUndefined<SecretOptions>();
takesUndefined<ClientOptions>();
takesUndefined<WorkOptions>();

// ── no Date in an input ──────────────────────────────────────────────────────────────────────────

holdfast.job("text", { run: (input: { since: string }) => new Date(input.since) });
holdfast.job("transformed", {
  input: z.object({ since: z.iso.datetime().transform((text) => new Date(text)) }),
  run: ({ since }) => since.getTime(),
});
type Tree = { readonly name: string; readonly children: readonly Tree[] };
holdfast.job("tree", { run: (input: Tree) => input.children.length });
// @ts-expect-error The handler would get text instead of the Date.
holdfast.job("date", { run: (input: { since: Date }) => input.since.getTime() });
// @ts-expect-error The same deep inside, and perhaps.
holdfast.job("deep", { run: (input: { days: { at?: Date | null }[] }) => input.days.length });
// @ts-expect-error The same for a job that another process executes.
holdfast.job<{ since: Date }>("elsewhere", {});
// @ts-expect-error The schema refuses the text that the stored Date has become.
holdfast.job("schema", { input: z.object({ since: z.date() }), run: () => 1 });
