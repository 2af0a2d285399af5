-- BEGIN
insert into pause as p (at, by, note) values (:now, :by, :note)
on conflict ((until_at is null)) where until_at is null do update set note = excluded.note
where excluded.note <> coalesce(p.note, '')
returning at, until_at, by, note;

-- END
update pause set until_at = max(:now, at) where until_at is null returning at, until_at, by, note;

-- PAUSE_ON
select at, until_at, by, note from pause where until_at is null;

-- PRUNE
delete from pause where until_at < :now - :keepMs
  and not exists (select 1 from schedule s where s.next_at < pause.until_at) returning id;
