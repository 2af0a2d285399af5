// The pause of everything on SQLite: one row for each, the one that is on without an end.

/** Those that unrecorded ticks may fall into, for what reads schedules. */
export const PAUSES = /* sql */ `(
  select json_group_array(json_array(z.at, z.until_at, z.by, z.note) order by z.at) from {pause} z
  where z.until_at is null
    or z.until_at > (select min(m.next_at) from {schedule} m where m.next_at is not null))`;

const COLUMNS = "at, until_at, by, note";

/** No row: it is on already, with that note or without another. */
export const PAUSE_ALL = /* sql */ `
insert into {pause} (at, by, note) values (:now, :by, :note)
on conflict do update set note = excluded.note where excluded.note <> coalesce(note, '')
returning ${COLUMNS}`;

export const RESUME_ALL = /* sql */ `
update {pause} set until_at = max(:now, at) where until_at is null returning ${COLUMNS}`;

export const PAUSE_OF_ALL = /* sql */ `select ${COLUMNS} from {pause} where until_at is null`;

export const PRUNE_PAUSES = /* sql */ `
delete from {pause} where until_at < :now - :keepMs
  and not exists (select 1 from {schedule} s where s.next_at < {pause}.until_at)`;

export const QUIET_INSTANCE = /* sql */ `
update {instance} set
  quiet_at = case when :isQuiet then coalesce(quiet_at, :now) end,
  quiet_by = case when :isQuiet then coalesce(quiet_by, :by) end,
  quiet_note = case when :isQuiet then coalesce(:note, quiet_note) end
where id = :id returning no`;
