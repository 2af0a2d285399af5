// The table of how far runs are on PostgreSQL: one row for a run that told it, of its last attempt that
// did. By days as all history, so that it goes with its runs.

export const CREATE_PROGRESS = /* sql */ `
create table {progress} (
  run uuid primary key,
  fence bigint not null,
  attempt smallint not null,
  at bigint not null,
  stage text,
  done double precision,
  total double precision,
  stages jsonb not null
) partition by range (run);
create table {progress_rest} partition of {progress} default;
`;
