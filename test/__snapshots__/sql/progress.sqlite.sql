-- LISTED
select run, attempt, at, stage, done, total, case when octet_length(stages) <= 2048 then stages else '[]' end as stages from progress where run in (select value from json_each(:ids));

-- OF
select run, attempt, at, stage, done, total, stages as stages from progress where run in (select value from json_each(:ids));
