// Statements for a transaction that somebody else has open on PostgreSQL. Every parameter carries a
// cast, and column names are one word each: libraries may rename `two_words`.

/** Made with the tables, so that two databases with equal names are told apart. */
export const IDENTITY = /* sql */ `select v.identity::text as identity from {schema_version} v`;

/** A statement of ours by the search path of ours; each row comes as JSON. */
export const IN_OWN_PATH = /* sql */ `select a.answer from {in_own_path}($1) a (answer)`;

/**
 * Runs with the rights of its caller, who could send the statement just as well: so everybody may call it. Answers every
 * row as JSON, since nobody knows its columns before.
 */
export const CREATE_IN_OWN_PATH = /* sql */ `
create function {in_own_path}(statement text) returns setof text language plpgsql volatile
set search_path = pg_catalog, pg_temp as $holdfast$
declare
  v_row record;
begin
  for v_row in execute statement loop
    return next row_to_json(v_row)::text;
  end loop;
end
$holdfast$;
`;

// A batch that is refused is undone alone: what the caller did before stays, and can be committed.
export const BEGIN_PART = "savepoint holdfast_enqueue";
export const UNDO_PART = "rollback to savepoint holdfast_enqueue";
export const END_PART = "release savepoint holdfast_enqueue";
