-- ATTEMPTS
select a.attempt, a.fence, i.id as holder, a.ended, a.started_at, a.ended_at, a.error
from attempt a left join instance i on i.no = a.holder where a.run = :id
union all
select o.attempt, o.fence, i.id, o.status + 10, o.started_at, o.finished_at, o.error
from outcome o left join instance i on i.no = o.holder where o.id = :id and o.fence is not null
order by 2;

-- DELETE_PENDING_READY
delete from ready where id = :id
returning id, lane, attempt, extra, (select r.schedule from run r where r.id = :id) as schedule,
  (select r.batch from run r where r.id = :id) as batch;

-- DELETE_PENDING_WAITING
delete from waiting where id = :id
returning id, lane, attempt, extra, (select r.schedule from run r where r.id = :id) as schedule,
  (select r.batch from run r where r.id = :id) as batch;

-- GET
select * from run_state where id = :id;

-- HOLDING
select k.* from lease k where exists (select 1 from json_each(k.ids) m where m.value = :id);

-- INSERT_CANCELLED
insert into outcome (id, finished_at, lane, attempt, extra, status) values (:id, :now, :lane, :attempt, :extra, 3);

-- KNOWN
select r.id from run r where r.id = :id;

-- LIST.any
with page as materialized (
select s.id from (select x.id, x.lane from run x) s
where s.id < coalesce(:before, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  and s.id >= coalesce(:since, '00000000-0000-0000-0000-000000000000')
  and (:job is null or s.lane in (select l.id from lane l where l.job = :job))
  and exists (
    select 1 from run r where r.id = s.id
      and (:schedule is null or r.schedule = (select c.id from schedule c where c.name = :schedule))
      and (:mode is null or r.mode = :mode)
      and (:tag is null or :tag in (select value from json_each(r.tags)))
      and (:text is null or instr(lower(r.input), lower(:text)) > 0
        or r.key = :text or r.id = :text
        or (length(:text) >= 6 and lower(:text) in (
          substr(r.id, 37 - length(:text)), substr(r.id, 1, length(:text)))))
    )
order by s.id desc limit (:limit + 0))

select p.* from (
  select w.*, sum(w.weight) over (order by w.id desc) - w.weight as weight_before, count(*) over () as found_count
  from (
    select c.*, coalesce(octet_length(c.input), 0) + coalesce(octet_length(c.result), 0) + coalesce(octet_length(c.error), 0) + coalesce(octet_length(c.tags), 0) + coalesce(octet_length(c.items), 0) + 1024 as weight from (
      select f.id, f.job, f.queue, f.mode, f.priority, f.created_at, f.nominal_at, f.schedule, f.parent, f.key, f.version, f.status, f.attempt, f.attempts_max, f.fence, f.due_at, f.started_at, f.finished_at, f.updated_at, f.heartbeat_at, f.lease_until, f.holder, f.cancel_requested_at, f.tags, f.items, 
        case when octet_length(f.input) <= 2048 then f.input else
          '{"$truncated": true, "bytes": ' || cast(octet_length(f.input) as text) || ', "preview": ' ||
          json_quote(substr(f.input, 1, 1024) || '…') || '}' end as input, 
        case when octet_length(f.result) <= 2048 then f.result else
          '{"$truncated": true, "bytes": ' || cast(octet_length(f.result) as text) || ', "preview": ' ||
          json_quote(substr(f.result, 1, 1024) || '…') || '}' end as result,
        case when octet_length(f.error) <= 2048 then f.error
          else substr(f.error, 1, 2048) end as error
      from (select * from run_state where id in (select id from page) ) f limit (:limit + 0)
    ) c
  ) w
) p where p.weight_before < 1048576 order by p.id desc;

-- LIST.asleep
with page as materialized (
select s.id from (select x.id, x.lane from waiting x where x.asleep_at is not null) s
where s.id < coalesce(:before, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  and s.id >= coalesce(:since, '00000000-0000-0000-0000-000000000000')
  and (:job is null or s.lane in (select l.id from lane l where l.job = :job))
  and exists (
    select 1 from run r where r.id = s.id
      and (:schedule is null or r.schedule = (select c.id from schedule c where c.name = :schedule))
      and (:mode is null or r.mode = :mode)
      and (:tag is null or :tag in (select value from json_each(r.tags)))
      and (:text is null or instr(lower(r.input), lower(:text)) > 0
        or r.key = :text or r.id = :text
        or (length(:text) >= 6 and lower(:text) in (
          substr(r.id, 37 - length(:text)), substr(r.id, 1, length(:text)))))
    )
order by s.id desc limit (:limit + 0))

select p.* from (
  select w.*, sum(w.weight) over (order by w.id desc) - w.weight as weight_before, count(*) over () as found_count
  from (
    select c.*, coalesce(octet_length(c.input), 0) + coalesce(octet_length(c.result), 0) + coalesce(octet_length(c.error), 0) + coalesce(octet_length(c.tags), 0) + coalesce(octet_length(c.items), 0) + 1024 as weight from (
      select f.id, f.job, f.queue, f.mode, f.priority, f.created_at, f.nominal_at, f.schedule, f.parent, f.key, f.version, f.status, f.attempt, f.attempts_max, f.fence, f.due_at, f.started_at, f.finished_at, f.updated_at, f.heartbeat_at, f.lease_until, f.holder, f.cancel_requested_at, f.tags, f.items, 
        case when octet_length(f.input) <= 2048 then f.input else
          '{"$truncated": true, "bytes": ' || cast(octet_length(f.input) as text) || ', "preview": ' ||
          json_quote(substr(f.input, 1, 1024) || '…') || '}' end as input, 
        case when octet_length(f.result) <= 2048 then f.result else
          '{"$truncated": true, "bytes": ' || cast(octet_length(f.result) as text) || ', "preview": ' ||
          json_quote(substr(f.result, 1, 1024) || '…') || '}' end as result,
        case when octet_length(f.error) <= 2048 then f.error
          else substr(f.error, 1, 2048) end as error
      from (select * from run_state where id in (select id from page) ) f limit (:limit + 0)
    ) c
  ) w
) p where p.weight_before < 1048576 order by p.id desc;

-- LIST.cancelled
with page as materialized (
select s.id from (select x.id, x.lane from outcome x where x.status = 3) s
where s.id < coalesce(:before, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  and s.id >= coalesce(:since, '00000000-0000-0000-0000-000000000000')
  and (:job is null or s.lane in (select l.id from lane l where l.job = :job))
  and exists (
    select 1 from run r where r.id = s.id
      and (:schedule is null or r.schedule = (select c.id from schedule c where c.name = :schedule))
      and (:mode is null or r.mode = :mode)
      and (:tag is null or :tag in (select value from json_each(r.tags)))
      and (:text is null or instr(lower(r.input), lower(:text)) > 0
        or r.key = :text or r.id = :text
        or (length(:text) >= 6 and lower(:text) in (
          substr(r.id, 37 - length(:text)), substr(r.id, 1, length(:text)))))
    )
order by s.id desc limit (:limit + 0))

select p.* from (
  select w.*, sum(w.weight) over (order by w.id desc) - w.weight as weight_before, count(*) over () as found_count
  from (
    select c.*, coalesce(octet_length(c.input), 0) + coalesce(octet_length(c.result), 0) + coalesce(octet_length(c.error), 0) + coalesce(octet_length(c.tags), 0) + coalesce(octet_length(c.items), 0) + 1024 as weight from (
      select f.id, f.job, f.queue, f.mode, f.priority, f.created_at, f.nominal_at, f.schedule, f.parent, f.key, f.version, f.status, f.attempt, f.attempts_max, f.fence, f.due_at, f.started_at, f.finished_at, f.updated_at, f.heartbeat_at, f.lease_until, f.holder, f.cancel_requested_at, f.tags, f.items, 
        case when octet_length(f.input) <= 2048 then f.input else
          '{"$truncated": true, "bytes": ' || cast(octet_length(f.input) as text) || ', "preview": ' ||
          json_quote(substr(f.input, 1, 1024) || '…') || '}' end as input, 
        case when octet_length(f.result) <= 2048 then f.result else
          '{"$truncated": true, "bytes": ' || cast(octet_length(f.result) as text) || ', "preview": ' ||
          json_quote(substr(f.result, 1, 1024) || '…') || '}' end as result,
        case when octet_length(f.error) <= 2048 then f.error
          else substr(f.error, 1, 2048) end as error
      from (select * from run_state where id in (select id from page) ) f limit (:limit + 0)
    ) c
  ) w
) p where p.weight_before < 1048576 order by p.id desc;

-- LIST.completed
with page as materialized (
select s.id from (select x.id, x.lane from outcome x where x.status = 1) s
where s.id < coalesce(:before, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  and s.id >= coalesce(:since, '00000000-0000-0000-0000-000000000000')
  and (:job is null or s.lane in (select l.id from lane l where l.job = :job))
  and exists (
    select 1 from run r where r.id = s.id
      and (:schedule is null or r.schedule = (select c.id from schedule c where c.name = :schedule))
      and (:mode is null or r.mode = :mode)
      and (:tag is null or :tag in (select value from json_each(r.tags)))
      and (:text is null or instr(lower(r.input), lower(:text)) > 0
        or r.key = :text or r.id = :text
        or (length(:text) >= 6 and lower(:text) in (
          substr(r.id, 37 - length(:text)), substr(r.id, 1, length(:text)))))
    )
order by s.id desc limit (:limit + 0))

select p.* from (
  select w.*, sum(w.weight) over (order by w.id desc) - w.weight as weight_before, count(*) over () as found_count
  from (
    select c.*, coalesce(octet_length(c.input), 0) + coalesce(octet_length(c.result), 0) + coalesce(octet_length(c.error), 0) + coalesce(octet_length(c.tags), 0) + coalesce(octet_length(c.items), 0) + 1024 as weight from (
      select f.id, f.job, f.queue, f.mode, f.priority, f.created_at, f.nominal_at, f.schedule, f.parent, f.key, f.version, f.status, f.attempt, f.attempts_max, f.fence, f.due_at, f.started_at, f.finished_at, f.updated_at, f.heartbeat_at, f.lease_until, f.holder, f.cancel_requested_at, f.tags, f.items, 
        case when octet_length(f.input) <= 2048 then f.input else
          '{"$truncated": true, "bytes": ' || cast(octet_length(f.input) as text) || ', "preview": ' ||
          json_quote(substr(f.input, 1, 1024) || '…') || '}' end as input, 
        case when octet_length(f.result) <= 2048 then f.result else
          '{"$truncated": true, "bytes": ' || cast(octet_length(f.result) as text) || ', "preview": ' ||
          json_quote(substr(f.result, 1, 1024) || '…') || '}' end as result,
        case when octet_length(f.error) <= 2048 then f.error
          else substr(f.error, 1, 2048) end as error
      from (select * from run_state where id in (select id from page) ) f limit (:limit + 0)
    ) c
  ) w
) p where p.weight_before < 1048576 order by p.id desc;

-- LIST.failed
with page as materialized (
select s.id from (select x.id, x.lane from outcome x where x.status = 2) s
where s.id < coalesce(:before, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  and s.id >= coalesce(:since, '00000000-0000-0000-0000-000000000000')
  and (:job is null or s.lane in (select l.id from lane l where l.job = :job))
  and exists (
    select 1 from run r where r.id = s.id
      and (:schedule is null or r.schedule = (select c.id from schedule c where c.name = :schedule))
      and (:mode is null or r.mode = :mode)
      and (:tag is null or :tag in (select value from json_each(r.tags)))
      and (:text is null or instr(lower(r.input), lower(:text)) > 0
        or r.key = :text or r.id = :text
        or (length(:text) >= 6 and lower(:text) in (
          substr(r.id, 37 - length(:text)), substr(r.id, 1, length(:text)))))
    )
order by s.id desc limit (:limit + 0))

select p.* from (
  select w.*, sum(w.weight) over (order by w.id desc) - w.weight as weight_before, count(*) over () as found_count
  from (
    select c.*, coalesce(octet_length(c.input), 0) + coalesce(octet_length(c.result), 0) + coalesce(octet_length(c.error), 0) + coalesce(octet_length(c.tags), 0) + coalesce(octet_length(c.items), 0) + 1024 as weight from (
      select f.id, f.job, f.queue, f.mode, f.priority, f.created_at, f.nominal_at, f.schedule, f.parent, f.key, f.version, f.status, f.attempt, f.attempts_max, f.fence, f.due_at, f.started_at, f.finished_at, f.updated_at, f.heartbeat_at, f.lease_until, f.holder, f.cancel_requested_at, f.tags, f.items, 
        case when octet_length(f.input) <= 2048 then f.input else
          '{"$truncated": true, "bytes": ' || cast(octet_length(f.input) as text) || ', "preview": ' ||
          json_quote(substr(f.input, 1, 1024) || '…') || '}' end as input, 
        case when octet_length(f.result) <= 2048 then f.result else
          '{"$truncated": true, "bytes": ' || cast(octet_length(f.result) as text) || ', "preview": ' ||
          json_quote(substr(f.result, 1, 1024) || '…') || '}' end as result,
        case when octet_length(f.error) <= 2048 then f.error
          else substr(f.error, 1, 2048) end as error
      from (select * from run_state where id in (select id from page) ) f limit (:limit + 0)
    ) c
  ) w
) p where p.weight_before < 1048576 order by p.id desc;

-- LIST.pending
with page as materialized (
select s.id from (select x.id, x.lane from ready x union all select x.id, x.lane from waiting x) s
where s.id < coalesce(:before, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  and s.id >= coalesce(:since, '00000000-0000-0000-0000-000000000000')
  and (:job is null or s.lane in (select l.id from lane l where l.job = :job))
  and exists (
    select 1 from run r where r.id = s.id
      and (:schedule is null or r.schedule = (select c.id from schedule c where c.name = :schedule))
      and (:mode is null or r.mode = :mode)
      and (:tag is null or :tag in (select value from json_each(r.tags)))
      and (:text is null or instr(lower(r.input), lower(:text)) > 0
        or r.key = :text or r.id = :text
        or (length(:text) >= 6 and lower(:text) in (
          substr(r.id, 37 - length(:text)), substr(r.id, 1, length(:text)))))
    )
order by s.id desc limit (:limit + 0))

select p.* from (
  select w.*, sum(w.weight) over (order by w.id desc) - w.weight as weight_before, count(*) over () as found_count
  from (
    select c.*, coalesce(octet_length(c.input), 0) + coalesce(octet_length(c.result), 0) + coalesce(octet_length(c.error), 0) + coalesce(octet_length(c.tags), 0) + coalesce(octet_length(c.items), 0) + 1024 as weight from (
      select f.id, f.job, f.queue, f.mode, f.priority, f.created_at, f.nominal_at, f.schedule, f.parent, f.key, f.version, f.status, f.attempt, f.attempts_max, f.fence, f.due_at, f.started_at, f.finished_at, f.updated_at, f.heartbeat_at, f.lease_until, f.holder, f.cancel_requested_at, f.tags, f.items, 
        case when octet_length(f.input) <= 2048 then f.input else
          '{"$truncated": true, "bytes": ' || cast(octet_length(f.input) as text) || ', "preview": ' ||
          json_quote(substr(f.input, 1, 1024) || '…') || '}' end as input, 
        case when octet_length(f.result) <= 2048 then f.result else
          '{"$truncated": true, "bytes": ' || cast(octet_length(f.result) as text) || ', "preview": ' ||
          json_quote(substr(f.result, 1, 1024) || '…') || '}' end as result,
        case when octet_length(f.error) <= 2048 then f.error
          else substr(f.error, 1, 2048) end as error
      from (select * from run_state where id in (select id from page) ) f limit (:limit + 0)
    ) c
  ) w
) p where p.weight_before < 1048576 order by p.id desc;

-- LIST.running
with page as materialized (
select s.id from (select m.value as id, x.lane from lease x cross join json_each(x.ids) as m) s
where s.id < coalesce(:before, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  and s.id >= coalesce(:since, '00000000-0000-0000-0000-000000000000')
  and (:job is null or s.lane in (select l.id from lane l where l.job = :job))
  and exists (
    select 1 from run r where r.id = s.id
      and (:schedule is null or r.schedule = (select c.id from schedule c where c.name = :schedule))
      and (:mode is null or r.mode = :mode)
      and (:tag is null or :tag in (select value from json_each(r.tags)))
      and (:text is null or instr(lower(r.input), lower(:text)) > 0
        or r.key = :text or r.id = :text
        or (length(:text) >= 6 and lower(:text) in (
          substr(r.id, 37 - length(:text)), substr(r.id, 1, length(:text)))))
    )
order by s.id desc limit (:limit + 0))

select p.* from (
  select w.*, sum(w.weight) over (order by w.id desc) - w.weight as weight_before, count(*) over () as found_count
  from (
    select c.*, coalesce(octet_length(c.input), 0) + coalesce(octet_length(c.result), 0) + coalesce(octet_length(c.error), 0) + coalesce(octet_length(c.tags), 0) + coalesce(octet_length(c.items), 0) + 1024 as weight from (
      select f.id, f.job, f.queue, f.mode, f.priority, f.created_at, f.nominal_at, f.schedule, f.parent, f.key, f.version, f.status, f.attempt, f.attempts_max, f.fence, f.due_at, f.started_at, f.finished_at, f.updated_at, f.heartbeat_at, f.lease_until, f.holder, f.cancel_requested_at, f.tags, f.items, 
        case when octet_length(f.input) <= 2048 then f.input else
          '{"$truncated": true, "bytes": ' || cast(octet_length(f.input) as text) || ', "preview": ' ||
          json_quote(substr(f.input, 1, 1024) || '…') || '}' end as input, 
        case when octet_length(f.result) <= 2048 then f.result else
          '{"$truncated": true, "bytes": ' || cast(octet_length(f.result) as text) || ', "preview": ' ||
          json_quote(substr(f.result, 1, 1024) || '…') || '}' end as result,
        case when octet_length(f.error) <= 2048 then f.error
          else substr(f.error, 1, 2048) end as error
      from (select * from run_state where id in (select id from page) ) f limit (:limit + 0)
    ) c
  ) w
) p where p.weight_before < 1048576 order by p.id desc;

-- RUN
select * from run where id = :id;

-- SELECT.any
select s.id from (select x.id, x.lane from run x) s
where s.id < coalesce(:before, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  and s.id >= coalesce(:since, '00000000-0000-0000-0000-000000000000')
  and (:job is null or s.lane in (select l.id from lane l where l.job = :job))
  and exists (
    select 1 from run r where r.id = s.id
      and (:schedule is null or r.schedule = (select c.id from schedule c where c.name = :schedule))
      and (:mode is null or r.mode = :mode)
      and (:tag is null or :tag in (select value from json_each(r.tags)))
      and (:text is null or instr(lower(r.input), lower(:text)) > 0
        or r.key = :text or r.id = :text
        or (length(:text) >= 6 and lower(:text) in (
          substr(r.id, 37 - length(:text)), substr(r.id, 1, length(:text)))))
    )
order by s.id desc limit (:limit + 0);

-- SELECT.asleep
select s.id from (select x.id, x.lane from waiting x where x.asleep_at is not null) s
where s.id < coalesce(:before, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  and s.id >= coalesce(:since, '00000000-0000-0000-0000-000000000000')
  and (:job is null or s.lane in (select l.id from lane l where l.job = :job))
  and exists (
    select 1 from run r where r.id = s.id
      and (:schedule is null or r.schedule = (select c.id from schedule c where c.name = :schedule))
      and (:mode is null or r.mode = :mode)
      and (:tag is null or :tag in (select value from json_each(r.tags)))
      and (:text is null or instr(lower(r.input), lower(:text)) > 0
        or r.key = :text or r.id = :text
        or (length(:text) >= 6 and lower(:text) in (
          substr(r.id, 37 - length(:text)), substr(r.id, 1, length(:text)))))
    )
order by s.id desc limit (:limit + 0);

-- SELECT.cancelled
select s.id from (select x.id, x.lane from outcome x where x.status = 3) s
where s.id < coalesce(:before, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  and s.id >= coalesce(:since, '00000000-0000-0000-0000-000000000000')
  and (:job is null or s.lane in (select l.id from lane l where l.job = :job))
  and exists (
    select 1 from run r where r.id = s.id
      and (:schedule is null or r.schedule = (select c.id from schedule c where c.name = :schedule))
      and (:mode is null or r.mode = :mode)
      and (:tag is null or :tag in (select value from json_each(r.tags)))
      and (:text is null or instr(lower(r.input), lower(:text)) > 0
        or r.key = :text or r.id = :text
        or (length(:text) >= 6 and lower(:text) in (
          substr(r.id, 37 - length(:text)), substr(r.id, 1, length(:text)))))
    )
order by s.id desc limit (:limit + 0);

-- SELECT.completed
select s.id from (select x.id, x.lane from outcome x where x.status = 1) s
where s.id < coalesce(:before, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  and s.id >= coalesce(:since, '00000000-0000-0000-0000-000000000000')
  and (:job is null or s.lane in (select l.id from lane l where l.job = :job))
  and exists (
    select 1 from run r where r.id = s.id
      and (:schedule is null or r.schedule = (select c.id from schedule c where c.name = :schedule))
      and (:mode is null or r.mode = :mode)
      and (:tag is null or :tag in (select value from json_each(r.tags)))
      and (:text is null or instr(lower(r.input), lower(:text)) > 0
        or r.key = :text or r.id = :text
        or (length(:text) >= 6 and lower(:text) in (
          substr(r.id, 37 - length(:text)), substr(r.id, 1, length(:text)))))
    )
order by s.id desc limit (:limit + 0);

-- SELECT.failed
select s.id from (select x.id, x.lane from outcome x where x.status = 2) s
where s.id < coalesce(:before, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  and s.id >= coalesce(:since, '00000000-0000-0000-0000-000000000000')
  and (:job is null or s.lane in (select l.id from lane l where l.job = :job))
  and exists (
    select 1 from run r where r.id = s.id
      and (:schedule is null or r.schedule = (select c.id from schedule c where c.name = :schedule))
      and (:mode is null or r.mode = :mode)
      and (:tag is null or :tag in (select value from json_each(r.tags)))
      and (:text is null or instr(lower(r.input), lower(:text)) > 0
        or r.key = :text or r.id = :text
        or (length(:text) >= 6 and lower(:text) in (
          substr(r.id, 37 - length(:text)), substr(r.id, 1, length(:text)))))
    )
order by s.id desc limit (:limit + 0);

-- SELECT.pending
select s.id from (select x.id, x.lane from ready x union all select x.id, x.lane from waiting x) s
where s.id < coalesce(:before, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  and s.id >= coalesce(:since, '00000000-0000-0000-0000-000000000000')
  and (:job is null or s.lane in (select l.id from lane l where l.job = :job))
  and exists (
    select 1 from run r where r.id = s.id
      and (:schedule is null or r.schedule = (select c.id from schedule c where c.name = :schedule))
      and (:mode is null or r.mode = :mode)
      and (:tag is null or :tag in (select value from json_each(r.tags)))
      and (:text is null or instr(lower(r.input), lower(:text)) > 0
        or r.key = :text or r.id = :text
        or (length(:text) >= 6 and lower(:text) in (
          substr(r.id, 37 - length(:text)), substr(r.id, 1, length(:text)))))
    )
order by s.id desc limit (:limit + 0);

-- SELECT.running
select s.id from (select m.value as id, x.lane from lease x cross join json_each(x.ids) as m) s
where s.id < coalesce(:before, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  and s.id >= coalesce(:since, '00000000-0000-0000-0000-000000000000')
  and (:job is null or s.lane in (select l.id from lane l where l.job = :job))
  and exists (
    select 1 from run r where r.id = s.id
      and (:schedule is null or r.schedule = (select c.id from schedule c where c.name = :schedule))
      and (:mode is null or r.mode = :mode)
      and (:tag is null or :tag in (select value from json_each(r.tags)))
      and (:text is null or instr(lower(r.input), lower(:text)) > 0
        or r.key = :text or r.id = :text
        or (length(:text) >= 6 and lower(:text) in (
          substr(r.id, 37 - length(:text)), substr(r.id, 1, length(:text)))))
    )
order by s.id desc limit (:limit + 0);

-- SET_CANCELS
update lease set cancels = :cancels where fence = :fence;

-- SOURCES.any
select x.id, x.lane from run x;

-- SOURCES.asleep
select x.id, x.lane from waiting x where x.asleep_at is not null;

-- SOURCES.cancelled
select x.id, x.lane from outcome x where x.status = 3;

-- SOURCES.completed
select x.id, x.lane from outcome x where x.status = 1;

-- SOURCES.failed
select x.id, x.lane from outcome x where x.status = 2;

-- SOURCES.pending
select x.id, x.lane from ready x union all select x.id, x.lane from waiting x;

-- SOURCES.running
select m.value as id, x.lane from lease x cross join json_each(x.ids) as m;

-- TERMINAL
select id from outcome where id in (select value from json_each(:ids));

-- WITH_DIGITS
select x.id from (
  select b.id from (
    select r.id from run r where r.id >= :first and r.id <= :last order by r.id desc limit (:limit + 0)) b
  union
  select e.id from (
    select n.id from (select r.id from run r order by r.id desc limit 20000) n
    where substr(replace(n.id, '-', ''), 33 - length(:digits)) = :digits limit (:limit + 0)) e
) x order by x.id desc limit (:limit + 0);
