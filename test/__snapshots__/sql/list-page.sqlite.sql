-- RUN_PAGE
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
