-- IDENTITY
select v.identity::text as identity from schema_version v;
