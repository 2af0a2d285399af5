// Measures how long a run whose worker was killed waits until another process starts it again. The promise is lease +
// poll + 1 s; the peers' leases are hours or minutes long, so only Holdfast is measured.

import { setTimeout as pause } from "node:timers/promises";
import { withProcesses } from "../processes.mjs";

const LEASE_MS = 5000;
const POLL_MS = 1000;
const PATIENCE_MS = 60_000;

const stamp = () => Number(process.hrtime.bigint()) / 1e6;

export const takeover = {
  name: "takeover",
  title: `takeover of a killed worker's run, lease ${LEASE_MS / 1000} s; promised: lease + poll + 1 s = ${(LEASE_MS + POLL_MS + 1000) / 1000} s`,
  engines: ["postgres", "sqlite"],
  isFor: ({ packageName }) => packageName === "holdfast",
  unit: "s",
  primary: "seconds",
  isLowerBetter: true,
  async measure({ contestant, places }) {
    const place = await places.fresh(contestant, {});
    const params = { url: place.url, tuning: "latency", lease: LEASE_MS };
    try {
      return await withProcesses(contestant, 2, async (victim, heir) => {
        await victim.ask("open", params);
        await victim.ask("go", { keepStarts: true, isEndless: true });
        await victim.ask("seed", { count: 1 });
        await untilStarted(victim);
        await heir.ask("open", params);
        await heir.ask("go", { keepStarts: true });
        // Long enough for a renewal, so that the lease runs from the last heartbeat and not from the claim.
        await pause(LEASE_MS * 0.7);
        const killedAt = stamp();
        victim.kill("SIGKILL");
        const [[, startedAt]] = await untilStarted(heir);
        return { seconds: (startedAt - killedAt) / 1000 };
      });
    } finally {
      await place.drop();
    }
  },
};

async function untilStarted(worker) {
  const until = performance.now() + PATIENCE_MS;
  for (;;) {
    const { starts } = await worker.ask("notes");
    if (starts.length > 0) return starts;
    if (performance.now() > until)
      throw new Error(`Nobody started the run within ${PATIENCE_MS / 1000} s.`);
    await pause(20);
  }
}
