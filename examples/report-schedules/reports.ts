// Users' reports: schedules that users create, change and test while the service runs. Test runs, manual runs and
// scheduled runs take the same path from their input to the request. A run starts a report, sleeps until the API has made it,
// and stores it; it holds no worker meanwhile, and a restart or a retry goes on where it was.

import { type Holdfast, PermanentError } from "holdfast";
import { type Kysely, sql } from "kysely";
import { z } from "zod";
import type { ApiClient, ReportRequest } from "./api-client.js";

const DAY_MS = 86_400_000;

export const reportInput = z.object({
  /** Our own id of the instance, not the API's. */
  instance: z.uuid(),
  report: z.string().min(1),
  days: z.number().int().min(1).max(90).default(7),
});

export type ReportSchedule = {
  readonly cron: string;
  readonly timezone?: string;
  readonly input: z.input<typeof reportInput>;
};

export type Reports = ReturnType<typeof defineReports>;

const INSERT = `
  insert into report_executions (run_id, schedule, execution_id, rows_found, is_test)
  values ($1, $2, $3, $4, $5)`;

export function defineReports(
  holdfast: Holdfast,
  { db, api }: { readonly db: Kysely<unknown>; readonly api: ApiClient },
) {
  const report = holdfast.job("report", {
    input: reportInput,
    timeout: "10m",
    // Three retries: after 10, 20 and 40 seconds, never more than 60.
    retry: { attempts: 4, delay: "10s", factor: 2, max: "60s", jitter: 0 },
    async run(input, ctx) {
      const { runId, mode } = ctx;
      const { executionId } = await ctx.step("start", async () => {
        const until = ctx.nominalAt ?? new Date();
        const request = requestOf(input, {
          apiInstanceId: await apiInstanceId(input.instance),
          until,
        });
        ctx.log.info({ ...request, mode }, "starting a report");
        return api.start(request, ctx);
      });
      for (let look = 1; ; look += 1) {
        const { rows } = await ctx.step(`look ${look}`, () => api.look(executionId, ctx));
        if (rows === null) await ctx.sleep("2s", { name: `pause ${look}` });
        else {
          const { schedule } = (await holdfast.runs.get(runId)) ?? {};
          const values = [runId, schedule, executionId, rows, mode === "test" ? 1 : 0];
          return ctx.commit((tx) => {
            tx.query(INSERT, values);
            return { executionId, rows };
          });
        }
      }
    },
  });

  async function apiInstanceId(instance: string): Promise<string> {
    const { rows } = await sql<{ api_instance_id: string | null }>`
      select api_instance_id from instances where id = ${instance}`.execute(db);
    const id = rows[0]?.api_instance_id;
    if (id) return id;
    throw new PermanentError(`instance ${instance} is not connected to the marketing API`, {
      code: "INSTANCE_UNMAPPED",
    });
  }

  return {
    report,
    /** Makes a user's schedule or changes it. */
    save: (name: string, { cron, timezone = "UTC", input }: ReportSchedule) =>
      holdfast.schedules.upsert(name, { job: "report", cron, timezone, input }),
    /** Whether this user may ask for reports of this instance. */
    isOwner: async (user: string, instance = "") => {
      const owned = sql`select id from instances where id = ${instance} and name = ${user}`;
      return (await owned.execute(db)).rows.length > 0;
    },
    /** Runs it once, now; its ticks and its success rate do not change. */
    test: (name: string) => holdfast.schedules.trigger(name, { mode: "test" }),
  };
}

/** The same for every mode. The API wants dates without a zone. */
export function requestOf(
  { report, days }: { readonly report: string; readonly days: number },
  { apiInstanceId, until }: { readonly apiInstanceId: string; readonly until: Date },
): ReportRequest {
  const endMs = until.getTime() - (until.getTime() % DAY_MS);
  const withoutZone = (ms: number) => new Date(ms).toISOString().slice(0, 19);
  return {
    instanceId: apiInstanceId,
    report,
    timeWindowStart: withoutZone(endMs - days * DAY_MS),
    timeWindowEnd: withoutZone(endMs),
  };
}
