// The pause of everything on PostgreSQL: one row for each, the one that is on without an end.

/** For every statement that claims: asked once, of a table of a few rows. */
export const NOT_PAUSED = "not exists (select from {pause} z where z.until_at is null)";

/** Those that unrecorded ticks may fall into, for what reads schedules. */
export const PAUSES = /* sql */ `(
  select json_agg(json_build_array(z.at, z.until_at, z.by, z.note) order by z.at) from {pause} z
  where z.until_at is null
    or z.until_at > (select min(m.next_at) from {schedule} m where m.next_at is not null))`;

const COLUMNS = "at, until_at, by, note";

/** No row: it is on already, with that note or without another. */
export const PAUSE_ALL = /* sql */ `
insert into {pause} as p (at, by, note) values ({now}, :by, :note)
on conflict ((until_at is null)) where until_at is null do update set note = excluded.note
where excluded.note <> coalesce(p.note, '')
returning ${COLUMNS}`;

export const RESUME_ALL = /* sql */ `
update {pause} set until_at = greatest({now}, at) where until_at is null returning ${COLUMNS}`;

export const PAUSE_OF_ALL = /* sql */ `select ${COLUMNS} from {pause} where until_at is null`;

/** As long as a tick that is still to be recorded may fall into one, it is kept. */
export const PRUNE_PAUSES = /* sql */ `
delete from {pause} where until_at < {now} - :keepMs::bigint
  and not exists (select from {schedule} s where s.next_at < until_at) returning id`;

export const QUIET_INSTANCE = /* sql */ `
update {instance} set
  quiet_at = case when :isQuiet::boolean then coalesce(quiet_at, {now}) end,
  quiet_by = case when :isQuiet::boolean then coalesce(quiet_by, :by::text) end,
  quiet_note = case when :isQuiet::boolean then coalesce(:note::text, quiet_note) end
where id = :id returning no`;
