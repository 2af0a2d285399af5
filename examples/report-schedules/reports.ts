// Users' reports: schedules that users create, change and try while the service runs. A test run, a run by hand
// and a scheduled one go the same way, from their input to the request.

import { type Holdfast, PermanentError } from "holdfast";
import { z } from "zod";
import type { AppDatabase } from "../shared/database.js";
import type { ApiClient, ReportRequest } from "./api-client.js";

const DAY_MS = 86_400_000;

export const reportInput = z.object({
  /** Our own id of the instance, not the API's. */
  instance: z.uuid(),
  report: z.string().min(1),
  days: z.number().int().min(1).max(90).default(7),
});
export type ReportInput = z.input<typeof reportInput>;

export type ReportSchedule = {
  readonly cron: string;
  readonly timezone?: string;
  readonly input: ReportInput;
};

export type Reports = ReturnType<typeof defineReports>;

export function defineReports(
  holdfast: Holdfast,
  { db, api }: { readonly db: AppDatabase; readonly api: ApiClient },
) {
  const report = holdfast.job("report", {
    input: reportInput,
    timeout: "10m",
    // Three retries: after 10, 20 and 40 seconds, never more than 60.
    retry: { attempts: 4, delay: "10s", factor: 2, max: "60s", jitter: 0 },
    async run(input, ctx) {
      const request = requestOf(input, {
        apiInstanceId: await apiInstanceId(db, input.instance),
        until: ctx.nominalAt ?? new Date(),
      });
      ctx.log.info(
        { ...request, mode: ctx.mode, attempt: ctx.attempt },
        "asking the marketing API",
      );
      const { idempotencyKey, signal } = ctx;
      const { executionId, rows } = await api.execute(request, { idempotencyKey, signal });
      const schedule = (await holdfast.runs.get(ctx.runId))?.schedule ?? null;
      const isTest = ctx.mode === "test" ? 1 : 0;
      await ctx.commit((tx) =>
        db.within(
          tx,
          [
            [
              `insert into report_executions (run_id, schedule, execution_id, rows_found, is_test)
               values ($1, $2, $3, $4, $5)`,
              [ctx.runId, schedule, executionId, rows, isTest],
            ],
          ],
          { executionId, rows },
        ),
      );
    },
  });

  return {
    report,
    /** Makes a user's schedule or changes it. */
    save: (name: string, { cron, timezone, input }: ReportSchedule) =>
      holdfast.schedules.upsert(name, { job: "report", cron, timezone: timezone ?? "UTC", input }),
    /** Whether reports of this instance may be asked for by this user. */
    isOwner: async (user: string, instance: string | undefined) => {
      const mine = "select id from instances where id = $1 and name = $2";
      return (await db.query(mine, [instance ?? "", user])).length > 0;
    },
    /** Runs it once, now; its times and its success rate stay as they are. */
    test: (name: string) => holdfast.schedules.trigger(name, { mode: "test" }),
  };
}

/** The same for every mode. The API wants dates without a zone. */
export function requestOf(
  { report, days }: { readonly report: string; readonly days: number },
  { apiInstanceId, until }: { readonly apiInstanceId: string; readonly until: Date },
): ReportRequest {
  const end = until.getTime() - (until.getTime() % DAY_MS);
  return {
    instanceId: apiInstanceId,
    report,
    timeWindowStart: withoutZone(new Date(end - days * DAY_MS)),
    timeWindowEnd: withoutZone(new Date(end)),
  };
}

function withoutZone(date: Date): string {
  return date.toISOString().slice(0, 19);
}

async function apiInstanceId(db: AppDatabase, instance: string): Promise<string> {
  const [row] = await db.query("select api_instance_id from instances where id = $1", [instance]);
  if (typeof row?.api_instance_id === "string") return row.api_instance_id;
  throw new PermanentError(`instance ${instance} is not connected to the marketing API`, {
    code: "INSTANCE_UNMAPPED",
  });
}
