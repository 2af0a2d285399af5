// The statements of operators on PostgreSQL.

/**
 * Whoever is silent is taken for dead, also if its time is over: the deadline then stays after the end
 * of the lease. A living holder may renew in between, but not beyond the deadline that is set here.
 * A lease that somebody has locked is being renewed or settled: it is not stale.
 */
export const EXPIRE_STALE = /* sql */ `
with now as materialized (select {now} as at),
stale as materialized (
  select k.fence, k.renewed_at <= now.at - :silentMs::bigint as is_silent
  from {lease} k, now
  where k.until > now.at
    and (k.renewed_at <= now.at - :silentMs::bigint or k.claimed_at <= now.at - :ranMs::bigint)
  order by k.fence for no key update of k skip locked
),
silent as (
  update {lease} set until = now.at, deadline_at = greatest(deadline_at, now.at + 1)
  from now where fence = any(array(select fence from stale where is_silent))
),
over as (
  update {lease} set until = now.at, deadline_at = least(deadline_at, now.at)
  from now where fence = any(array(select fence from stale where not is_silent))
)
select count(*)::int as expired from stale`;
