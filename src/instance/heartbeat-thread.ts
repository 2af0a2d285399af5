// The thread of the heartbeat: a store of its own on the same database, and a beater that stands in when
// the main thread is silent. Started by thread-heartbeat.ts, and by nobody else.

import { parentPort, workerData } from "node:worker_threads";
import { systemClock } from "../shared/adapters/clock.js";
import { systemRandom } from "../shared/adapters/random.js";
import { storeFor } from "../store/open.js";
import { StandbyHeartbeat } from "./standby-heartbeat.js";
import type { FromThread, ThreadData, ToThread } from "./thread-heartbeat.js";

const { holder, ...database } = workerData as ThreadData;
const store = storeFor({
  ...database,
  // The main thread has made the tables.
  migrate: "off",
  mayCreate: false,
  clock: systemClock,
  chance: systemRandom,
});
await store.open();

const beater = new StandbyHeartbeat({ store, holder, clock: systemClock });
const say = (message: FromThread) => parentPort?.postMessage(message);

parentPort?.on("message", (message: ToThread) => void take(message));
say({ kind: "ready" });

async function take(message: ToThread): Promise<void> {
  if (message.kind === "close") {
    beater.close();
    await store.close().catch(() => undefined);
    parentPort?.close();
    return;
  }
  const blockedMs = beater.held(message.leases);
  if (blockedMs !== null) say({ kind: "blocked", blockedMs: Math.round(blockedMs) });
  if (message.kind === "held") return;
  const { id } = message;
  try {
    say({ kind: "renewed", id, answer: await beater.renew(message.params) });
  } catch (error) {
    say({ kind: "failed", id, message: error instanceof Error ? error.message : String(error) });
  }
}
