-- LISTED
select run, attempt, at, stage, done, total, case when octet_length(stages::text) <= 2048 then stages::text else '[]' end as stages from progress where run = any(:ids::uuid[]);

-- OF
select run, attempt, at, stage, done, total, stages::text as stages from progress where run = any(:ids::uuid[]);
