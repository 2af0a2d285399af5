// The table of log lines that are kept with runs on PostgreSQL, by days as all history. Fences grow, so
// the key is their order.

export const CREATE_LOG = /* sql */ `
create table {log} (
  run uuid not null,
  fence bigint not null,
  no int not null,
  attempt smallint not null,
  at bigint not null,
  level smallint not null,
  message text not null,
  fields text,
  primary key (run, fence, no)
) partition by range (run);
create table {log_rest} partition of {log} default;
`;
