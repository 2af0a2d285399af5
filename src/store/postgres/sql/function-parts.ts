// Parts that the SQL functions on PostgreSQL share: the declaration of a function, ids, checks of texts, and the hash
// of an input, equal to the hash from code, so that a key means the same from both.

/**
 * The search path is fixed, and a function runs with the rights of the schema's owner: a caller needs only the right to
 * execute it, which no role has until it is granted. The settings are those of our own connections; connection.ts gives
 * the reasons.
 */
export const DEFINED = /* sql */ `security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_sort = off set jit = off`;

/** Our own errors, as SQLSTATE; the detail has the code that the library uses for the same error. */
export const SQLSTATES = {
  wrongParameter: "HF000",
  jobUnknown: "HF001",
  keyConflict: "HF002",
  leaseLost: "HF003",
  scheduleUnfit: "HF004",
  resultConflict: "HF005",
  signalConflict: "HF006",
  jobNotRemote: "HF007",
} as const;

export const PARTS = /* sql */ `
-- A UUIDv7: the time in milliseconds, then chance.
create function {new_run_id}() returns uuid language sql volatile
set search_path = pg_catalog, pg_temp as $holdfast$
  select (lpad(to_hex({now}), 12, '0') || '7' || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid
$holdfast$;

create function {checked_text}(field text, value text, length_max int) returns text language plpgsql immutable
set search_path = pg_catalog, pg_temp as $holdfast$
begin
  -- Characters are counted as JavaScript counts them: one beyond the basic plane is two.
  if value is null or (length(regexp_replace(value, '[\\U00010000-\\U0010FFFF]', 'xx', 'g')) between 1 and length_max
      and value !~ '[\\u0001-\\u001f\\u007f-\\u009f\\u2028\\u2029]' and value !~ '^\\s' and value !~ '\\s$') then
    return value;
  end if;
  raise exception '%: must be a text of 1 to % characters, without control characters and spaces at its ends',
    field, length_max using errcode = '${SQLSTATES.wrongParameter}', detail = 'CONFIGURATION_INVALID';
end
$holdfast$;

-- How deep JSON is nested, counted on its text: with strings removed, only brackets count.
create function {json_depth}(value text) returns int language sql immutable
set search_path = pg_catalog, pg_temp as $holdfast$
  select coalesce(max(d.depth), 0)::int from (
    select sum(case when b.bracket in ('[', '{') then 1 else -1 end) over (order by b.place) as depth
    from unnest(string_to_array(
      regexp_replace(regexp_replace(value, '"([^"\\\\]|\\\\.)*"', '', 'g'), '[^][{}]', '', 'g'), null
    )) with ordinality b (bracket, place)
  ) d
$holdfast$;

-- The same JSON with the members of every object sorted, as JavaScript sorts: by units of UTF-16, in
-- which the last characters of the basic plane come after all characters beyond it. Numbers as JavaScript
-- writes them: the shortest digits that mean the same double, plain from 1e-6 to 1e21. Settings are those
-- of input_hash, its only caller: setting them again at each level would take most of the time.
create function {canonical_json}(value jsonb) returns text language plpgsql immutable as $holdfast$
declare
  v_number float8;
begin
  case jsonb_typeof(value)
    when 'object' then
      return '{' || coalesce((
        select string_agg(to_json(m.key)::text || ':' || {canonical_json}(m.value), ','
          order by regexp_replace(m.key, '([\\uE000-\\uFFFF])', chr(1114111) || '\\1', 'g') collate "C")
        from jsonb_each(value) m), '') || '}';
    when 'array' then
      return '[' || coalesce((
        select string_agg({canonical_json}(e.value), ',' order by e.place)
        from jsonb_array_elements(value) with ordinality e (value, place)), '') || ']';
    when 'number' then
      v_number := value::float8;
      return case
        when v_number = 0 then '0'
        when abs(v_number) >= 1e21 or abs(v_number) < 1e-6
          then regexp_replace(v_number::text, 'e([+-])0+', 'e\\1')
        else trim_scale(v_number::text::numeric)::text end;
    else
      return value::text;
  end case;
end
$holdfast$;

create function {input_hash}(input jsonb) returns text language sql immutable
set search_path = pg_catalog, pg_temp set extra_float_digits = 1 as $holdfast$
  select rtrim(translate(encode(sha256(convert_to({canonical_json}(input), 'UTF8')), 'base64'), '+/', '-_'), '=')
$holdfast$;
`;
