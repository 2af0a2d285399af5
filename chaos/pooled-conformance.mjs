// Runs the conformance suite on PostgreSQL with PgBouncer in transaction mode between the stores and the server.

import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { startPostgres } from "../scripts/postgres.mjs";
import { POOLED_SETTINGS, startPooler } from "./pooler.mjs";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
/** Tests run concurrently, each with sessions of its own. */
const SESSIONS = 60;

/**
 * @param {string[]} [filters] of vitest
 * @returns {Promise<number>} the exit code of the suite
 */
export async function conformanceThroughPooler(filters = []) {
  const server = await startPostgres({ settings: { max_connections: 200, ...POOLED_SETTINGS } });
  const pooler = await startPooler({ port: server.port, sessions: SESSIONS });
  try {
    const child = spawn(
      "npx",
      ["vitest", "run", "--project", "conformance", "postgres", ...filters],
      {
        cwd: ROOT,
        stdio: "inherit",
        env: {
          ...process.env,
          HOLDFAST_TEST_POSTGRES_URL: pooler.url,
          HOLDFAST_TEST_POSTGRES_DIRECT_URL: server.url,
        },
      },
    );
    return await new Promise((resolve) => child.once("exit", (code) => resolve(code ?? 1)));
  } finally {
    await pooler.stop();
    await server.stop();
  }
}
