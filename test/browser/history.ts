// Makes a day and a half of history in virtual time for the browser tests: enough ticks, items, changes and grants for
// a second page of every list, and runs that failed, made other runs and were dispatched.

import http from "node:http";
import type { AddressInfo } from "node:net";
import { createTestHoldfast, PermanentError } from "./stage.js";

const HOUR_MS = 3_600_000;
const HOURS = 36;
/** More than a page of any list. */
const MANY = 60;

/** Answers that it is busy, then takes what comes; what it was sent is kept. */
async function startService() {
  const orders: { readonly runId: string; readonly fence: number }[] = [];
  const server = http.createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    orders.push(JSON.parse(String(Buffer.concat(chunks))));
    if (orders.length > 1) response.writeHead(202).end();
    else response.writeHead(503).end('{"why":"all desks are taken","token":"CANARY"}');
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/run`;
  const stop = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return { orders, url, stop };
}

export async function liveThrough() {
  const service = await startService();
  const beganAt = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - HOURS * HOUR_MS;
  const kit = await createTestHoldfast({
    now: new Date(beganAt),
    patience: "30s",
    options: {
      publicUrl: "https://jobs.example.com",
      workers: {
        desks: {
          url: `${service.url}?key=CANARY`,
          secret: "a-secret-of-enough-letters",
          allowPrivateNetwork: true,
        },
      },
    },
  });
  const { holdfast } = kit;
  const study = holdfast.job("study", {
    retry: { attempts: 1 },
    async run(input: { fails?: boolean; items?: number }, ctx) {
      for (const word of ["one", "two", "three", "four", "five", "six", "seven"])
        ctx.log.info(`looked ${word} times`);
      for (let no = 0; no < (input.items ?? 0); no += 1)
        await ctx.item(`city-${String(no).padStart(2, "0")}`, async () => ({ listings: no }));
      if (input.fails) throw new PermanentError("no such market");
      const cities = ["berlin", "paris", "madrid", "lisbon", "vienna"];
      return {
        markets: { eu: { cities, deep: { hidden: "in the third level" } } },
        note: "n".repeat(99),
      };
    },
  });
  holdfast.job("parent", { run: (_: unknown, ctx) => ctx.enqueue(study, { fails: false }) });
  const remote = holdfast.job("remote", { worker: "desks", retry: { attempts: 3, delay: "1s" } });
  await holdfast.schedules.upsert("studies", { job: study, cron: "0 * * * *", input: {} });
  await holdfast.schedules.upsert("breaking", {
    job: study,
    cron: "30 */6 * * *",
    input: { fails: true },
    alerts: { consecutiveFailures: 2 },
  });
  for (let no = 0; no < MANY; no += 1) {
    await holdfast.schedules.pause("breaking", `round ${no}`);
    await holdfast.schedules.resume("breaking");
    await kit.until(holdfast.lock("import", {}, async () => undefined));
    await holdfast.remote.claim({ instance: `elsewhere-${no}`, jobs: ["none"], limit: 1 });
  }
  await kit.start();
  await kit.advanceTo(new Date(beganAt + HOURS * HOUR_MS - 60_000));
  const rich = await study.enqueue({ items: MANY }, { tags: ["by-hand"] });
  const family = await kit.holdfast.enqueue("parent", null);
  const sent = await remote.enqueue({ study: 7 });
  await kit.advance("10s");
  const order = service.orders.at(-1);
  if (service.orders.length !== 2 || !order) throw new Error("It was to be sent twice.");
  await kit.until(holdfast.remote.complete({ id: sent.id, fence: order.fence }, { found: 3 }));
  await kit.untilIdle();
  return { kit, service, ids: { rich: rich.id, family: family.id, sent: sent.id } };
}
