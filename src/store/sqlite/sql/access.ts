// Statements about access on SQLite: the sessions of the page.

export const CREATE_ACCESS = /* sql */ `
create table {session} (
  digest text primary key,
  secret text not null,
  until_at integer not null
) without rowid;
create index {session_secret} on {session} (secret, until_at);
`;

export const PRUNE_SESSIONS = "delete from {session} where until_at <= :now";

export const CROWD_OUT_SESSIONS = /* sql */ `
delete from {session} where digest in (
  select s.digest from {session} s where s.secret = :secret order by s.until_at desc, s.digest limit -1 offset (:keep - 1))`;

export const BEGIN_SESSION = /* sql */ `
insert into {session} (digest, secret, until_at) values (:digest, :secret, :now + :lengthMs) on conflict do nothing`;

export const SESSION_SECRET =
  "select secret from {session} where digest = :digest and until_at > :now";

export const END_SESSION = "delete from {session} where digest = :digest";
