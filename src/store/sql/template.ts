// Statement texts: names of tables and the clock are filled in once, when a store opens; values are
// always parameters. `{run}` is a table or view of ours, `{now}` the database's clock in epoch
// milliseconds, `:name` a parameter. Nothing here depends on a flag or on a user's value.

export type Dialect = {
  /** The full name of one of our tables, views, indexes or functions. */
  readonly name: (plain: string) => string;
  /** The one place that SQL takes its time from. A test or the simulator supplies `:now` instead. */
  readonly now: string;
};

export type Statement = {
  readonly text: string;
  /** The parameters in the order of their numbers. */
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
export function numbered(template: string, dialect: Dialect): Statement {
  const parameters: string[] = [];
  const text = fillIn(template, dialect).replace(PARAMETER, (_, name: string) => {
    if (!parameters.includes(name)) parameters.push(name);
    return `$${parameters.indexOf(name) + 1}`;
  });
  return { text, parameters };
}

/**
 * For a function in the database: every `:name` becomes the SQL expression that stands for it there.
 * A parameter without one is a mistake that shows when the function is made, not when it is called.
 */
export function expressed(template: string, expressions: Readonly<Record<string, string>>): string {
  return template.replace(PARAMETER, (_, name: string) => {
    const expression = expressions[name];
    if (expression === undefined) throw new Error(`The function has nothing for :${name}.`);
    return `(${expression})`;
  });
}

/** For engines with named parameters: the text stays, the names are collected. */
export function named(template: string, dialect: Dialect): Statement {
  const text = fillIn(template, dialect);
  const parameters = new Set<string>();
  for (const [, name] of text.matchAll(PARAMETER)) parameters.add(name as string);
  return { text, parameters: [...parameters] };
}
