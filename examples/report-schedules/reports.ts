// Users' reports. Test runs, manual runs and scheduled runs take the same path from their input to the request. A run
// starts a report, sleeps until the API has made it, and stores it; it holds no worker meanwhile, and a restart or a retry
// goes on where it was.

import { type Holdfast, PermanentError } from "holdfast";
import { type Kysely, sql } from "kysely";
import { z } from "zod";
import type { ApiClient } from "./api-client.js";

const DAY_MS = 86_400_000;
const INSERT = `
  insert into report_executions (run_id, schedule, execution_id, rows_found, is_test)
  values ($1, $2, $3, $4, $5)`;

const reportInput = z.object({
  /** Our own id of the instance, not the API's. */
  instance: z.uuid(),
  report: z.string().min(1),
  days: z.number().int().min(1).max(90).default(7),
});

export function defineReports(
  holdfast: Holdfast,
  { db, api }: { readonly db: Kysely<unknown>; readonly api: ApiClient },
) {
  return holdfast.job("report", {
    input: reportInput,
    timeout: "10m",
    // Three retries: after 10, 20 and 40 seconds, never more than 60.
    retry: { attempts: 4, delay: "10s", factor: 2, max: "60s", jitter: 0 },
    async run({ instance, report, days }, ctx) {
      const { executionId } = await ctx.step("start", async () => {
        const instanceId = await apiInstanceId(db, instance);
        const request = { instanceId, report, ...timeWindow(days, ctx.nominalAt ?? new Date()) };
        ctx.log.info({ ...request, mode: ctx.mode }, "starting a report");
        return api.start(request, ctx);
      });
      for (;;) {
        const { rows } = await ctx.step("look", () => api.look(executionId, ctx));
        if (rows !== null) {
          const { schedule, mode } = (await holdfast.runs.get(ctx.runId)) ?? {};
          const isTest = mode === "test" ? 1 : 0;
          return ctx.commit((tx) => {
            tx.query(INSERT, [ctx.runId, schedule, executionId, rows, isTest]);
            return { executionId, rows };
          });
        }
        await ctx.sleep("2s");
      }
    },
  });
}

async function apiInstanceId(db: Kysely<unknown>, instance: string) {
  const { rows } = await sql<{ api_instance_id: string | null }>`
    select api_instance_id from instances where id = ${instance}`.execute(db);
  if (rows[0]?.api_instance_id) return rows[0].api_instance_id;
  throw new PermanentError(`instance ${instance} is not connected to the marketing API`, {
    code: "INSTANCE_UNMAPPED",
  });
}

/** Whole days before `until`. The API wants dates without a zone. */
function timeWindow(days: number, until: Date) {
  const endMs = until.getTime() - (until.getTime() % DAY_MS);
  const withoutZone = (ms: number) => new Date(ms).toISOString().slice(0, 19);
  return {
    timeWindowStart: withoutZone(endMs - days * DAY_MS),
    timeWindowEnd: withoutZone(endMs),
  };
}
