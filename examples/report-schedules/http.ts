// The API for users: each sees, creates, changes, tests and deletes only their own report schedules. The owner is the
// first part of a schedule's name, which no request can choose. Web standards only.

import type { Holdfast } from "holdfast";
import type { ReportSchedule, Reports } from "./reports.js";

export type ReportsApi = {
  readonly holdfast: Holdfast;
  readonly reports: Reports;
  /** The sender of the request; null: unknown. */
  readonly userOf: (request: Request) => string | null;
};

/** `/schedules`, `/schedules/:name` and `/schedules/:name/test`. */
export function reportsApi({ holdfast, reports, userOf }: ReportsApi) {
  return async (request: Request): Promise<Response> => {
    const user = userOf(request);
    if (user === null) return answer(401, { error: "sign in first" });
    const [, room, given = "", verb = ""] = new URL(request.url).pathname.split("/");
    if (room !== "schedules") return answer(404, { error: "there is nothing here" });
    if (given === "") return answer(200, await ownSchedules(holdfast, user));
    const name = `${user}/${decodeURIComponent(given)}`;
    try {
      if (request.method === "PUT" && verb === "") {
        const wanted = (await request.json()) as ReportSchedule;
        if (!(await reports.isOwner(user, wanted.input?.instance)))
          return answer(400, { error: "input.instance is not yours" });
        const { schedule } = await reports.save(name, wanted);
        return answer(200, shown(schedule));
      }
      const schedule = await holdfast.schedules.get(name);
      if (!schedule) return answer(404, { error: "you have no schedule of that name" });
      if (request.method === "POST" && verb === "test") {
        const tested = await reports.test(name);
        // Skipped: a run of the schedule is not over yet.
        return answer(tested.skipped ? 409 : 202, tested);
      }
      if (request.method === "DELETE" && verb === "") await holdfast.schedules.delete(name);
      return answer(200, shown(schedule));
    } catch (error) {
      // A wrong cron or a wrong input: the message names the field.
      const { code, message } = error as { readonly code?: string; readonly message: string };
      if (code === "CONFIGURATION_INVALID" || code === "INPUT_INVALID")
        return answer(400, { error: message });
      throw error;
    }
  };
}

async function ownSchedules(holdfast: Holdfast, user: string) {
  const own = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await holdfast.schedules.list({ job: "report", ...(cursor && { cursor }) });
    own.push(...page.schedules.filter(({ name }) => name.startsWith(`${user}/`)));
    cursor = page.nextCursor;
  }
  return own.map(shown);
}

type Schedule = Awaited<ReturnType<Reports["save"]>>["schedule"];

function shown({ name, cron, timezone, input, nextAt, lastStatus }: Schedule) {
  return { name: name.slice(name.indexOf("/") + 1), cron, timezone, input, nextAt, lastStatus };
}

function answer(status: number, body: unknown): Response {
  return Response.json(body, { status });
}
