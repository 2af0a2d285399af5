// The table of how far runs are on SQLite: one row for a run that told it, of its last attempt that did.

export const CREATE_PROGRESS = /* sql */ `
create table {progress} (
  run text primary key,
  fence integer not null,
  attempt integer not null,
  at integer not null,
  stage text,
  done real,
  total real,
  stages text not null
) without rowid;
`;
