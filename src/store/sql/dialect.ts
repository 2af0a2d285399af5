// Renders a statement that is written once for one of the two engines. It is PostgreSQL's SQL with a few named holes;
// table names, `{now}` on PostgreSQL and parameters are filled in later (template.ts).

export type Engine = "sqlite" | "postgres";

/** One text with holes, or both texts side by side where an engine needs its own. */
export type SqlText = string | { readonly [Name in Engine]: string };

/** Words that differ by engine, written as `{word}`. */
const WORDS: Readonly<Record<string, { readonly [Name in Engine]: string }>> = {
  least: { postgres: "least", sqlite: "min" },
  greatest: { postgres: "greatest", sqlite: "max" },
  json_array: { postgres: "jsonb_build_array", sqlite: "json_array" },
  json_object: { postgres: "jsonb_build_object", sqlite: "json_object" },
  json_agg: { postgres: "jsonb_agg", sqlite: "json_group_array" },
  json_quote: { postgres: "to_json", sqlite: "json_quote" },
  /** The position of one text in another. */
  instr: { postgres: "strpos", sqlite: "instr" },
  /** Keeps PostgreSQL from making a join of a subquery, whose plan would depend on statistics. */
  "not flattened": { postgres: "offset 0", sqlite: "" },
  /** Elements of a list column. */
  length: { postgres: "cardinality", sqlite: "json_array_length" },
  /** Text sorts by its bytes, as SQLite does anyway. */
  bytewise: { postgres: 'collate "C"', sqlite: "" },
  // SQLite has one writer at a time: its rows need no locks.
  "for update": { postgres: "for update", sqlite: "" },
  "for update skip locked": { postgres: "for update skip locked", sqlite: "" },
};
const WORD = /\{([a-z_ ]+)\}/g;
/** `id {any :ids::uuid[]}`: the id is in a list that is one parameter. */
const ANY = /\{any :(\w+)::(\w+)\[\]\}/g;
/** `id {any k.ids}`: the id is one of a list column. */
const ANY_OF_COLUMN = /\{any (\w+\.\w+)\}/g;
/**
 * `id {any select …}`: the id is one of these rows. PostgreSQL reads them once, before it looks for ids by an index; it
 * would compare row by row with a subquery.
 */
const ANY_OF_ROWS = /\{any (select (?:[^{}]|\{\w+\})+)\}/g;
/** `{members i.schedules as n}`: a row `n.value` for each text of a list that is stored as JSON. */
const MEMBERS = /\{members ([\w.]+) as (\w+)\}/g;
/** `{each k.ids as m}`: a row `m.value` for each element of a list column, an array on PostgreSQL. */
const EACH = /\{each ([\w.]+) as (\w+)\}/g;
/** `{rows :given as x (id uuid, kind text)}`: the rows of one parameter, a JSON list of objects with these members. */
const ROWS = /\{rows :(\w+) as (\w+) \(([^(){}]+)\)\}/g;
const CAST = /::\w+(\[\])?/g;
const LIMIT = /\b(limit|offset) :(\w+)/g;

const rendered: { readonly [Name in Engine]: Map<string, string> } = {
  postgres: new Map(),
  sqlite: new Map(),
};

export function render(sql: SqlText, engine: Engine): string {
  const given = typeof sql === "string" ? sql : sql[engine];
  const known = rendered[engine].get(given);
  if (known !== undefined) return known;
  const worded = given.replace(WORD, (hole, word: string) => WORDS[word]?.[engine] ?? hole);
  const text = engine === "postgres" ? forPostgres(worded) : forSqlite(worded);
  rendered[engine].set(given, text);
  return text;
}

function forPostgres(sql: string): string {
  return sql
    .replace(ANY, "= any(:$1::$2[])")
    .replace(ANY_OF_COLUMN, "= any($1)")
    .replace(ANY_OF_ROWS, "= any(array($1))")
    .replace(MEMBERS, "json_array_elements_text($1) as $2 (value)")
    .replace(EACH, "unnest($1) as $2 (value)")
    .replace(ROWS, "json_to_recordset(:$1::json) as $2 ($3)");
}

/**
 * SQLite has no casts of this form, reads a list from JSON text, and takes the time of its transaction as a parameter.
 * `+ 0`: SQLite must not plan by the value of a limit, or it prepares the statement anew for each.
 */
function forSqlite(sql: string): string {
  return sql
    .replace(ANY, "in (select value from json_each(:$1))")
    .replace(ANY_OF_COLUMN, "in (select value from json_each($1))")
    .replace(ANY_OF_ROWS, "in ($1)")
    .replace(MEMBERS, "json_each($1) as $2")
    .replace(EACH, "json_each($1) as $2")
    .replace(ROWS, (_, given: string, name: string, columns: string) => {
      const read = columns.split(",").map((each) => each.trim().split(" ")[0]);
      const members = read.map((column) => `value ->> '${column}' as ${column}`);
      return `(select ${members.join(", ")} from json_each(:${given})) as ${name}`;
    })
    .replaceAll("{now}", ":now")
    .replace(CAST, "")
    .replace(LIMIT, "$1 (:$2 + 0)");
}
