// Statements about access on PostgreSQL: the sessions of the page.

export const CREATE_ACCESS = /* sql */ `
create table {session} (
  digest text collate "C" primary key,
  secret text collate "C" not null,
  until_at bigint not null
);
create index session_secret on {session} (secret, until_at);
`;

export const PRUNE_SESSIONS = "delete from {session} where until_at <= {now} returning digest";

/** No row: it is there already, since the statement was repeated. */
export const BEGIN_SESSION = /* sql */ `
with gone as (
  delete from {session} where digest in (
    select s.digest from {session} s where s.secret = :secret order by s.until_at desc, s.digest offset :keep::int - 1)
)
insert into {session} (digest, secret, until_at) values (:digest, :secret, {now} + :lengthMs::bigint)
on conflict (digest) do nothing returning digest`;

export const SESSION_SECRET =
  "select secret from {session} where digest = :digest and until_at > {now}";

export const END_SESSION = "delete from {session} where digest = :digest returning digest";
