// The API for users: each sees, creates, changes, tests and deletes only their own report schedules. The owner is the
// first part of a schedule's name, which no request can choose. Web standards only.

import type { Holdfast, Schedule } from "holdfast";
import { type Kysely, sql } from "kysely";

type Wanted = { cron: string; timezone?: string; input?: { instance?: string } };

export type ReportsApi = {
  readonly holdfast: Holdfast;
  readonly db: Kysely<unknown>;
  /** The sender of the request; null: unknown. */
  readonly userOf: (request: Request) => string | null;
};

/** `/schedules`, `/schedules/:name` and `/schedules/:name/test`. */
export function reportsApi({ holdfast, db, userOf }: ReportsApi) {
  const { schedules } = holdfast;

  return async (request: Request): Promise<Response> => {
    const user = userOf(request);
    if (user === null) return answer(401, { error: "sign in first" });
    const [, room, given = "", verb = ""] = new URL(request.url).pathname.split("/");
    const action = `${request.method} ${verb}`.trim();
    if (room !== "schedules") return answer(404, { error: "there is nothing here" });
    if (given === "") return answer(200, (await schedulesOf(user)).map(shown));
    const name = `${user}/${decodeURIComponent(given)}`;
    if (action === "PUT") return save(user, name, (await request.json()) as Wanted);
    const schedule = await schedules.get(name);
    if (!schedule) return answer(404, { error: "you have no schedule of that name" });
    if (action === "POST test") {
      // The schedule's ticks and its success rate do not change.
      const tested = await schedules.trigger(name, { mode: "test" });
      // Skipped: a run of the schedule is not over yet.
      return answer(tested.skipped ? 409 : 202, tested);
    }
    if (action === "DELETE") await schedules.delete(name);
    return answer(200, shown(schedule));
  };

  async function save(user: string, name: string, { cron, timezone = "UTC", input }: Wanted) {
    const owned = sql`select 1 from instances where id = ${input?.instance ?? ""} and name = ${user}`;
    if ((await owned.execute(db)).rows.length === 0)
      return answer(400, { error: "input.instance is not yours" });
    try {
      const saved = await schedules.upsert(name, { job: "report", cron, timezone, input });
      return answer(200, shown(saved.schedule));
    } catch (error) {
      // A wrong cron or a wrong input: the message names the field.
      const { code = "", message } = error as { readonly code?: string; readonly message: string };
      if (["CONFIGURATION_INVALID", "INPUT_INVALID"].includes(code))
        return answer(400, { error: message });
      throw error;
    }
  }

  async function schedulesOf(user: string, cursor?: string): Promise<readonly Schedule[]> {
    const page = await schedules.list({ job: "report", ...(cursor && { cursor }) });
    const own = page.schedules.filter(({ name }) => name.startsWith(`${user}/`));
    return page.nextCursor ? [...own, ...(await schedulesOf(user, page.nextCursor))] : own;
  }
}

function shown({ name, cron, timezone, input, nextAt, lastStatus }: Schedule) {
  return { name: name.slice(name.indexOf("/") + 1), cron, timezone, input, nextAt, lastStatus };
}

function answer(status: number, body: unknown): Response {
  return Response.json(body, { status });
}
