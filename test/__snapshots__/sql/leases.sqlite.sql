-- CANCELLING
select * from lease where cancels is not null;

-- EXPIRED
select k.*, l.job, i.id as holder_id, p.attempts, p.delay_ms, p.factor, p.max_ms, p.jitter, p.on_lost
from lease k join lane l on l.id = k.lane join policy p on p.id = k.policy left join instance i on i.no = k.holder
where k.until <= :now order by k.until limit (:limit + 0);

-- EXPIRE_STALE
update lease as k set until = :now, deadline_at = iif(k.renewed_at <= :now - max(:silentMs, :respectsLeases * p.lease_ms),
  max(k.deadline_at, :now + 1), min(k.deadline_at, :now))
from policy p
where p.id = k.policy and k.until > :now
  and (k.renewed_at <= :now - max(:silentMs, :respectsLeases * p.lease_ms)
    or k.claimed_at <= :now - max(:ranMs, :respectsLeases * p.timeout_ms));

-- IS_COMPLETED
select 1 from outcome where id = :id and fence = :fence and status = 1;

-- MARK_STARTED
update lease set started = :started where fence = :fence;
