// Keeps names in our statements to the server's own, whatever others made in schemas on the search path: a function
// of another role that fits better than the server's would be executed with our rights.
// A session of our own is pinned once. Behind a pooler, where the next statement may find another session, each statement
// brings the path along. In users' transactions a function of our schema has it, so that theirs stays as it is even
// between two statements of theirs that are under way at the same time.

import { textArray } from "./array.js";

/** The server's own names first; temporary ones, which anybody may make, last. */
const OWN_PATH = "pg_catalog, pg_temp";
export const PIN_SESSION = `set search_path = ${OWN_PATH}`;
export const PIN_TRANSACTION = `set local search_path = ${OWN_PATH}`;

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

/** One message, which is one transaction: the path is as before when it is over. */
export function pinnedStatement(text: string, values: readonly unknown[] = []): string {
  return `${PIN_TRANSACTION}; ${inlined(text, values)}`;
}

/** The statement with its values in it, each as a literal that the cast beside it reads. */
export function inlined(text: string, values: readonly unknown[]): string {
  return text.replace(/\$(\d+)/g, (_, number: string) => literal(values[Number(number) - 1]));
}

function literal(value: unknown): string {
  if (value === null || value === undefined) return "null";
  const text = textOf(value).replaceAll("'", "''");
  // The same whatever the server takes a backslash for.
  return text.includes("\\") ? ` E'${text.replaceAll("\\", "\\\\")}'` : `'${text}'`;
}

function textOf(value: unknown): string {
  if (Array.isArray(value))
    return textArray(value.map((each) => (each === null ? null : textOf(each))));
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
