-- LIST
with counts as (
  select lane, count(*) as ready, 0 as waiting, 0 as running from ready group by lane
  union all
  select lane, 0, count(*), 0 from waiting group by lane
  union all
  select lane, 0, 0, sum(json_array_length(ids)) from lease group by lane
)
select n.name, q.paused_at, q.pause_note, coalesce(c.ready, 0) as ready, coalesce(c.waiting, 0) as waiting,
  coalesce(c.running, 0) as running
from (select l.queue as name from lane l union select x.name from queue x) n
left join queue q on q.name = n.name
left join (
  select l.queue, sum(x.ready) as ready, sum(x.waiting) as waiting, sum(x.running) as running
  from counts x join lane l on l.id = x.lane group by l.queue) c on c.queue = n.name
order by n.name;

-- PAUSE
insert into queue as q (name, paused_at, pause_note)
select :queue, case when :isPaused then :now end, case when :isPaused then :note end
where :isPaused or exists (select 1 from queue x where x.name = :queue)
on conflict (name) do update set
  paused_at = case when :isPaused then coalesce(q.paused_at, :now) end,
  pause_note = case when :isPaused then coalesce(:note, q.pause_note) end
where (q.paused_at is not null) <> :isPaused or (:isPaused and :note <> coalesce(q.pause_note, ''))
returning name;
