// Makes a PostgreSQL server available as HOLDFAST_TEST_POSTGRES_URL, starting one where none is given.
// Without a server the suites that need one skip themselves and the reason is printed; under CI that is an error.

import { startPostgres } from "../../scripts/postgres.mjs";

export async function setup(): Promise<(() => Promise<void>) | undefined> {
  if (process.env.HOLDFAST_TEST_POSTGRES_URL) return undefined;
  const knownProblem = process.env.HOLDFAST_TEST_POSTGRES_PROBLEM;
  if (knownProblem) return without(knownProblem);
  try {
    const server = await startPostgres({ settings: { max_connections: 200 } });
    process.env.HOLDFAST_TEST_POSTGRES_URL = server.url;
    return async () => {
      delete process.env.HOLDFAST_TEST_POSTGRES_URL;
      await server.stop();
    };
  } catch (error) {
    return without(error instanceof Error ? error.message : String(error));
  }
}

function without(problem: string): undefined {
  if (process.env.CI) throw new Error(`PostgreSQL is required here: ${problem}`);
  console.warn(`\nNO POSTGRESQL: the suites that need it are skipped. ${problem}\n`);
}
