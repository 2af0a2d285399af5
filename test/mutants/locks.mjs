// Mutants of named locks: who holds one, whose word counts, and who is served next.

/** @type {readonly import("./list.mjs").Mutant[]} */
export const LOCK_MUTANTS = [
  {
    name: "lock-ended-without-fence-sqlite",
    promise: "S3: a stale release changes nothing",
    file: "src/store/sql/sqlite-locks.ts",
    find: "delete from {lock} where name = :name and fence = :fence",
    replace: "delete from {lock} where name = :name and :fence > 0",
    suites: ["conformance: SQLite"],
  },
  {
    name: "lock-extended-without-fence-sqlite",
    promise: "S3: a stale extend changes nothing",
    file: "src/store/sql/sqlite-locks.ts",
    find: "renewed_at = :now where name = :name and fence = :fence",
    replace: "renewed_at = :now where name = :name and :fence > 0",
    suites: ["conformance: SQLite"],
  },
  {
    name: "lock-overtaken-sqlite",
    promise: "a free lock goes to the first live waiter",
    file: "src/store/sqlite-locks.ts",
    find: "if (isHeld || found.is_behind === 1) {",
    replace: "if (isHeld) {",
    suites: ["conformance: SQLite"],
  },
  {
    name: "lock-released-without-fence-postgres",
    promise: "S3: a stale release changes nothing",
    file: "src/store/sql/postgres-locks.ts",
    find: "where l.name = :name::text and l.fence = :fence::bigint and l.state = 0\n  returning l.fence, l.name",
    replace:
      "where l.name = :name::text and :fence::bigint > 0 and l.state = 0\n  returning l.fence, l.name",
    suites: ["conformance: PostgreSQL, locks"],
  },
  {
    name: "lock-repeat-is-another-postgres",
    promise: "a repeat with the same token is the same grant",
    file: "src/store/sql/postgres-locks.ts",
    find: "l.token = :token::uuid as is_own",
    replace: "l.token is null as is_own",
    suites: ["conformance: PostgreSQL, locks"],
  },
  {
    name: "lock-waits-for-a-row-postgres",
    promise: "a lock that somebody is taking keeps no statement waiting",
    file: "src/store/sql/postgres-locks.ts",
    find: "and not (select is_behind from queue)\n  for update of l skip locked",
    replace: "and not (select is_behind from queue)\n  for update of l",
    suites: ["conformance: PostgreSQL, locks"],
  },
  {
    name: "lock-trusted-for-ever",
    promise: "trust runs out before the lease does",
    file: "src/locks/hold.ts",
    find: "if (isHeld === false || !this.isTrusted) return this.#lose();",
    replace: "if (isHeld === false) return this.#lose();",
    suites: ["engine: locks"],
  },
  {
    name: "lock-begun-untrusted",
    promise: "nothing begins under a grant that may be over",
    file: "src/locks/hold.ts",
    find: "if (this.isTrusted) this.#again(",
    replace: "if (this.#timer === null) this.#again(",
    suites: ["engine: locks"],
  },
  {
    name: "lost-lock-is-a-success",
    promise: "S3: whoever lost its lock is told so",
    file: "src/locks/locking.ts",
    find: "if (hold.isLost || !isReleased) {",
    replace: "if (hold.isLost && !isReleased) {",
    suites: ["engine: locks"],
  },
  {
    name: "lock-kept-when-its-function-throws",
    promise: "if the function throws, the lock is released",
    file: "src/locks/locking.ts",
    find: "const isReleased = await this.#released({ provider, grant, isLost: hold.isLost, wasTrusted });",
    replace:
      'const isReleased = "error" in ended || await this.#released({ provider, grant, isLost: hold.isLost, wasTrusted });',
    suites: ["engine: locks"],
  },
];
