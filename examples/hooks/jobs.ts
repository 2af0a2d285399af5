// Hooks around every run: a request id for all its calls, counts for the metrics, and an alert when a run has failed
// for good.

import { AsyncLocalStorage } from "node:async_hooks";
import { Holdfast } from "holdfast";

export const current = new AsyncLocalStorage<{ readonly requestId: string }>();
export const counts = { completed: 0, retried: 0, failed: 0 };
export const alerts: string[] = [];

export const holdfast = new Holdfast({
  database: "sqlite:hooks.db",
  // Around every handler of this instance: all code inside can read the request id.
  middleware: (run, next) => current.run({ requestId: run.runId }, next),
  // Errors of the library itself, for example of an unreachable database.
  onError: (error) => alerts.push(`holdfast: ${error}`),
});

export const charge = holdfast.job("charge", {
  retry: { attempts: 2, delay: "100ms" },
  async run({ account }: { account: string }, ctx) {
    ctx.log.info({ account }, "charging");
    if (account === "closed") throw new Error("The account is closed.");
    return { receipt: current.getStore()?.requestId };
  },
  onFailure: (run, error, { willRetry }) => {
    if (!willRetry) alerts.push(`${run.job} [${run.tags}]: ${(error as Error).message}`);
  },
});

holdfast.on("run.completed", () => (counts.completed += 1));
holdfast.on("run.retrying", () => (counts.retried += 1));
holdfast.on("run.failed", () => (counts.failed += 1));
