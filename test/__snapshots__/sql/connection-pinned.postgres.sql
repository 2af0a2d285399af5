-- CREATE_IN_OWN_PATH
create function in_own_path(statement text) returns setof text language plpgsql volatile
set search_path = pg_catalog, pg_temp as $holdfast$
declare
  v_row record;
begin
  for v_row in execute statement loop
    return next row_to_json(v_row)::text;
  end loop;
end
$holdfast$;;

-- IN_OWN_PATH
select a.answer from in_own_path($1) a (answer);
