-- BEGIN
insert into session (digest, secret, until_at) values (:digest, :secret, :now + :lengthMs)
on conflict (digest) do nothing returning digest;

-- CROWD_OUT
delete from session where digest in (
  select x.digest from (
    select s.digest, row_number() over (order by s.until_at desc, s.digest) as place
    from session s where s.secret = :secret and s.digest <> :digest) x
  where x.place >= :keep);

-- END
delete from session where digest = :digest returning digest;

-- END_OF_SECRET
delete from session where secret = :secret;

-- PRUNE
delete from session where until_at <= :now returning digest;

-- SECRET
select secret from session where digest = :digest and until_at > :now;
