// Simulates the surroundings of Holdfast in `npm run example market-studies`, in a process of its own: the markets with
// their faults, the worker service, an outside cron that calls every second, and users who request studies. Sometimes
// it kills the worker service, to show how its runs recover. It ends with the process that started it.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startListings } from "./listings.js";
import { NIGHTLY, STUDIES, STUDY } from "./studies.js";

const holdfastUrl = process.env.HOLDFAST_PUBLIC_URL ?? "http://127.0.0.1:4780";
const workerUrl = process.env.WORKER_URL ?? "http://127.0.0.1:4792/";
const cronSecret = process.env.HOLDFAST_TRIGGER_SECRET;
const CRASH_EVERY_MS = 60_000;
const FIRST_CRASH_MS = 6_000;
const ENDS_WITH_STDIN = 'process.stdin.once("end", () => process.exit()).resume()';
const [yaris, austral, , , enyaq] = STUDIES.map(([id]) => id);

const source = await startListings({ paceMs: 400 });
let service = startService();
process.stdin
  .once("end", () => {
    service.kill("SIGKILL");
    process.exit();
  })
  .resume();
// Ctrl-C reaches every process of a terminal: this one ends after Holdfast.
process.on("SIGINT", () => undefined);
await until(async () => (await fetch(`${holdfastUrl}/readyz`)).ok);
// Any response shows that it is up.
await until(async () => (await fetch(workerUrl)).status > 0);
console.log(`  demo    the dashboard: ${holdfastUrl}/`);
// The first call also creates the schedules that the code declares.
await call("POST", "/api/tick", { limit: 5 }, cronSecret);
await Promise.all([cron(), people(), crashes()]);

/** The worker service; when it dies, another one takes its place. */
function startService() {
  const child = spawn(
    process.execPath,
    // The second import ends the service when its stdin does: if this process is killed, none stays behind.
    [
      ...["--import", "tsx", "--import", `data:text/javascript,${ENDS_WITH_STDIN}`],
      fileURLToPath(new URL("./service.ts", import.meta.url)),
    ],
    {
      env: {
        ...process.env,
        LISTINGS_URL: source.url,
        PORT: process.env.WORKER_PORT,
      },
      stdio: ["pipe", "pipe", "inherit"],
      // Ctrl-C must not reach it: it would drain while nothing can receive its results.
      detached: true,
    },
  );
  createInterface(child.stdout).on("line", (line) => console.log(line));
  child.once("exit", async (_, signal) => {
    if (signal !== "SIGKILL") return;
    await pause(500);
    service = startService();
  });
  return child;
}

/** An external cron, such as cron-job.org: at most five jobs a call. */
async function cron() {
  for (;;) {
    await call("POST", "/api/tick", { limit: 5 }, cronSecret).catch(() => undefined);
    await pause(1_000);
  }
}

async function people() {
  await call("POST", `/api/schedules/${NIGHTLY}/trigger`, {});
  await call("PUT", "/api/schedules/yaris-watch", {
    job: STUDY,
    every: "10s",
    input: { studyIds: [yaris, enyaq], threshold: 3_000 },
  });
  for (let no = 1; ; no += 1) {
    // Some markets are slow, some fail and recover, some block us.
    if (no % 2 === 0) source.plan("DE", "failing");
    if (no % 3 === 1) source.plan("AT", "blocked");
    if (no % 4 === 0) source.plan("IT", "slow", "slow");
    const picked = STUDIES.filter((_, at) => (at + no) % 3 === 0).map(([id]) => id);
    // A typing mistake: fails at once, with the reason.
    const studyIds = no % 14 === 3 ? ["TOYOTA_YARIS CROS_2025_FR_NL"] : [...picked, austral];
    const input = { studyIds: [...new Set(studyIds)], threshold: 4_000 + no * 100 };
    const key = `asked-${process.pid}-${no}`;
    const asked = { input, key, delay: "1s" };
    await call("POST", `/api/jobs/${STUDY}/runs`, asked).catch(() => undefined);
    await pause(3_000);
  }
}

async function crashes() {
  for (let waitMs = FIRST_CRASH_MS; ; waitMs = CRASH_EVERY_MS) {
    await pause(waitMs);
    // In the middle of a study, so that there is work to recover.
    const before = source.asked.length;
    await until(async () => source.asked.length > before);
    console.log("  demo    the worker service is killed; another one takes its place");
    service.kill("SIGKILL");
  }
}

async function call(method: string, path: string, body: object, secret?: string) {
  const response = await fetch(holdfastUrl + path, {
    method,
    headers: {
      "content-type": "application/json",
      ...(secret && { authorization: `Bearer ${secret}` }),
    },
    body: JSON.stringify(body),
  });
  if (!response.ok) console.error(`  demo    ${method} ${path}: ${await response.text()}`);
}

async function until(look: () => Promise<boolean>) {
  while (!(await look().catch(() => false))) await pause(100);
}
