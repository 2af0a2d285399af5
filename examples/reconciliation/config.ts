// Reads the environment. Both parts are off unless they are turned on, as in any service that is deployed before it is
// used; a value that is neither true nor false stops the start.

export function readConfig(env: Readonly<Record<string, string | undefined>>) {
  const isOn = (name: string) => {
    const value = env[name] || "false";
    if (value === "true" || value === "false") return value === "true";
    throw new Error(`${name} must be "true" or "false", but is "${value}"`);
  };
  const databaseUrl = env.DATABASE_URL || "sqlite:.holdfast/reconciliation.db";
  const sharedLock = env.RECONCILIATION_SHARED_LOCK ? Number(env.RECONCILIATION_SHARED_LOCK) : null;
  if (sharedLock !== null && !Number.isSafeInteger(sharedLock))
    throw new Error("RECONCILIATION_SHARED_LOCK must be a whole number such as 738523901");
  if (sharedLock !== null && databaseUrl.startsWith("sqlite:"))
    throw new Error(
      "RECONCILIATION_SHARED_LOCK is an advisory lock of PostgreSQL, but DATABASE_URL is a SQLite file: " +
        "give it a postgres:// address, or leave the lock out",
    );
  return {
    databaseUrl,
    scheduler: {
      isEnabled: isOn("RECONCILIATION_SCHEDULER_ENABLED"),
      cron: env.RECONCILIATION_CRON_SCHEDULE || "0 2 * * *",
    },
    worker: {
      isEnabled: isOn("RECONCILIATION_WORKER_ENABLED"),
      pollMs: Number(env.RECONCILIATION_POLLING_INTERVAL_MS || 5_000),
    },
    sharedLock,
  };
}
