// The statements of operators on SQLite.

/** The same rules as in EXPIRE_STALE of postgres-operators.ts. */
export const EXPIRE_STALE = /* sql */ `
update {lease} set until = :now, deadline_at = iif(renewed_at <= :now - :silentMs,
  max(deadline_at, :now + 1), min(deadline_at, :now))
where until > :now and (renewed_at <= :now - :silentMs or claimed_at <= :now - :ranMs)`;
