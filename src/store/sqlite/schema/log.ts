// The table of log lines that are kept with runs on SQLite. Fences grow, so the key is their order.

export const CREATE_LOG = /* sql */ `
create table {log} (
  run text not null,
  fence integer not null,
  no integer not null,
  attempt integer not null,
  at integer not null,
  level integer not null,
  message text not null,
  fields text,
  primary key (run, fence, no)
) without rowid;
`;
