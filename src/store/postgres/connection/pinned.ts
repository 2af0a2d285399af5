// Makes names in our statements mean the server's own objects, whatever other roles created in schemas on the search
// path: otherwise a function of another role that fits better than the server's would run with our rights. A session of
// our own is pinned once. Behind a pooler, where the next statement may run in another session, each statement carries
// the path. In users' transactions a function of our schema has the path, so that the user's path stays as it is even
// between two concurrent statements of the user.

import { textArray } from "./array.js";

/** The server's own names first; temporary ones, which any role may create, last. */
const OWN_PATH = "pg_catalog, pg_temp";
export const PIN_SESSION = `set search_path = ${OWN_PATH}`;
export const PIN_TRANSACTION = `set local search_path = ${OWN_PATH}`;

/** Runs a statement of ours with our search path; each row comes as JSON. */
export const IN_OWN_PATH = /* sql */ `select a.answer from {in_own_path}($1) a (answer)`;

/**
 * Runs with the rights of its caller, who could send the statement directly: so every role may call it. Returns every
 * row as JSON, since the columns are not known before.
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

/** One message, which is one transaction: the path is restored at its end. */
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
  // Means the same whatever the server's setting for backslashes is.
  return text.includes("\\") ? ` E'${text.replaceAll("\\", "\\\\")}'` : `'${text}'`;
}

function textOf(value: unknown): string {
  if (Array.isArray(value))
    return textArray(value.map((each) => (each === null ? null : textOf(each))));
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
