// How runs leave PostgreSQL, each with all that belongs to it. A run goes only with its outcome: an operator's
// retry may take that away while a statement waits for it.

/** Removes what belongs to the runs whose outcomes were removed by the part of that name. */
const belongingsOf = (ended: string) => /* sql */ `
runs as (delete from {run} where id = any(array(select id from ${ended}))),
attempts as (delete from {attempt} where run = any(array(select id from ${ended}))),
items as (delete from {item} where run = any(array(select id from ${ended}))),
item_counts as (delete from {item_count} where run = any(array(select id from ${ended}))),
progress as (delete from {progress} where run = any(array(select id from ${ended}))),
lines as (delete from {log} where run = any(array(select id from ${ended}))),
keys as (delete from {key} where run = any(array(select id from ${ended})))`;

/** One run, as an operator asks for it. */
export const REMOVE = /* sql */ `
with ended as (delete from {outcome} where id = :id::uuid returning id),
${belongingsOf("ended")}
select exists (select from ended) as removed, exists (select from {run} where id = :id::uuid) as known`;

/** Those of a job that are past its time; who was retried since they were looked at may have ended anew. */
export const REMOVE_RUNS = /* sql */ `
with ended as (
  delete from {outcome} where id = any(:ids::uuid[]) and (finished_at < :until::bigint or id <= :edge::uuid)
  returning id
),
${belongingsOf("ended")}
select count(*)::int as removed from ended`;

/**
 * What is removed row by row: expired keys, what is left of old days, silent instances, statistics. What was
 * chosen is judged once more as it is removed: a key may have been taken anew, an instance may have come back.
 */
export const PRUNE = /* sql */ `
with now as materialized (select {now} as at),
expired as (
  delete from {key} where ctid = any(array(
    select k.ctid from {key} k, now where k.expires_at <= now.at limit :limit))
    and expires_at <= (select at from now) returning 1
),
old as materialized (
  select o.id from {outcome_rest} o, now where o.finished_at < now.at - :keepMs::bigint
  order by o.finished_at limit :limit
),
ended as (delete from {outcome_rest} where id = any(array(select id from old)) returning id),
${belongingsOf("ended")},
instances as (
  delete from {instance} where no = any(array(
    select i.no from {instance} i, now
    where i.seen_at < now.at - :keepMs::bigint - 86400000
      and not exists (select from {lease} k where k.holder = i.no) limit :limit))
    and seen_at < (select at from now) - :keepMs::bigint - 86400000 returning 1
),
rollups as (
  delete from {rollup} where ctid = any(array(
    select r.ctid from {rollup} r, now where r.hour_at < now.at - greatest(:keepMs::bigint, 2678400000) limit :limit)) returning 1
)
select (select count(*) from expired) + (select count(*) from ended) + (select count(*) from instances)
  + (select count(*) from rollups) as pruned`;
