// Statement texts: names of tables and the clock are filled in once, when a store opens; values are
// always parameters. `{run}` is a table or view of ours, `{now}` the database's clock in epoch
// milliseconds, `:name` a parameter. Nothing here depends on a flag or on a user's value.

export type Dialect = {
  /** The full name of one of our tables, views, indexes or functions. */
  readonly name: (plain: string) => string;
  /** The only source of time in SQL. A test or the simulator supplies `:now` instead. */
  readonly now: string;
};

export type FilledStatement = {
  readonly text: string;
  /** The parameters in the order of their numbers or places. */
  readonly parameters: readonly string[];
};

/** `:name`, but not the second half of a cast. */
const PARAMETER = /(?<![:\w]):([a-z][A-Za-z]*)/g;

export function fillIn(template: string, dialect: Dialect): string {
  return template.replace(/\{([a-z_0-9]+)\}/g, (_, plain: string) =>
    plain === "now" ? dialect.now : dialect.name(plain),
  );
}

/** For engines with numbered parameters: every `:name` becomes `$n`, the same name the same number. */
export function numbered(template: string, dialect: Dialect): FilledStatement {
  const parameters: string[] = [];
  const text = fillIn(template, dialect).replace(PARAMETER, (_, name: string) => {
    if (!parameters.includes(name)) parameters.push(name);
    return `$${parameters.indexOf(name) + 1}`;
  });
  return { text, parameters };
}

const unnamedBefore = new WeakMap<Dialect, Map<string, FilledStatement>>();

/**
 * For engines whose parameters go by their order: every `:name` becomes `?`, a name as often as it occurs. SQLite's
 * libraries take a value by position in half the time of one by name. Stores that share a dialect share the result:
 * tests open thousands of them.
 */
export function unnamed(template: string, dialect: Dialect): FilledStatement {
  const known = unnamedBefore.get(dialect) ?? new Map<string, FilledStatement>();
  unnamedBefore.set(dialect, known);
  let statement = known.get(template);
  if (!statement) {
    const parameters: string[] = [];
    const text = fillIn(template, dialect).replace(PARAMETER, (_, name: string) => {
      parameters.push(name);
      return "?";
    });
    statement = { text, parameters };
    known.set(template, statement);
  }
  return statement;
}

const EACH_ROW = "json_each(:rows)";
const aloneBefore = new Map<string, string>();

/**
 * A statement over `json_each(:rows)` and its parameters for these rows. A single row, the usual case, is not converted
 * to a table: that would take nearly twice as long (measured).
 */
export function overRows(
  template: string,
  rows: readonly unknown[],
): { readonly template: string; readonly rows: unknown } {
  if (rows.length !== 1) return { template, rows: JSON.stringify(rows) };
  const alone = aloneBefore.get(template) ?? template.replace(EACH_ROW, "(select :rows as value)");
  aloneBefore.set(template, alone);
  const [row] = rows;
  return { template: alone, rows: typeof row === "object" ? JSON.stringify(row) : row };
}

/**
 * For a function in the database: every `:name` becomes its SQL expression. A parameter without one fails when the
 * function is created, not when it is called.
 */
export function expressed(template: string, expressions: Readonly<Record<string, string>>): string {
  return template.replace(PARAMETER, (_, name: string) => {
    const expression = expressions[name];
    if (expression === undefined) throw new Error(`The function has nothing for :${name}.`);
    return `(${expression})`;
  });
}
