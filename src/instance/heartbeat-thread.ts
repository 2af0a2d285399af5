// Runs the heartbeat thread: opens its own store on the same database, and renews leases for the main thread on request
// or when the main thread is silent. Only thread-heartbeat.ts starts it.

import { parentPort, workerData } from "node:worker_threads";
import { systemClock } from "../shared/adapters/clock.js";
import { systemRandom } from "../shared/adapters/random.js";
import { storeFor } from "../store/open.js";
import {
  type FromThread,
  StandbyHeartbeat,
  type ThreadData,
  type ToThread,
} from "./thread-heartbeat.js";

const { holder, ...database } = workerData as ThreadData;
const store = storeFor({
  ...database,
  // The main thread has made the tables.
  migrate: "off",
  mayCreate: false,
  clock: systemClock,
  random: systemRandom,
});
await store.open();

const standby = new StandbyHeartbeat({ store, holder, clock: systemClock });
const post = (message: FromThread) => parentPort?.postMessage(message);

parentPort?.on("message", (message: ToThread) => void receive(message));
post({ kind: "ready" });

async function receive(message: ToThread): Promise<void> {
  if (message.kind === "close") {
    standby.close();
    await store.close().catch(() => undefined);
    parentPort?.close();
    return;
  }
  const blockedMs = standby.held(message.leases);
  if (blockedMs !== null) post({ kind: "blocked", blockedMs: Math.round(blockedMs) });
  if (message.kind === "held") return;
  const { id } = message;
  try {
    post({ kind: "renewed", id, answer: await standby.renew(message.params) });
  } catch (error) {
    post({ kind: "failed", id, message: error instanceof Error ? error.message : String(error) });
  }
}
