// Statements for a transaction that somebody else has open on PostgreSQL. Every parameter carries a
// cast, and column names are one word each: libraries may rename `two_words`.

/** Made with the tables, so that two databases with equal names are told apart. */
export const IDENTITY = /* sql */ `select v.identity::text as identity from {schema_version} v`;

// A batch that is refused is undone alone: what the caller did before stays, and can be committed.
export const BEGIN_PART = "savepoint holdfast_enqueue";
export const UNDO_PART = "rollback to savepoint holdfast_enqueue";
export const END_PART = "release savepoint holdfast_enqueue";
