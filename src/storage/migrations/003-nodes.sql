-- The processes that share this database. Each prolongs its row together with its leases, so that all of them know how
-- many there are and take equal shares of the partitions; one that holds none yet is seen here alone.
create table node (
  id text primary key,
  expires_at timestamptz not null
) with (fillfactor = 25);

-- Work that one node does for all. Whoever has it may do it until `expires_at`, and prolongs that while it works.
create table duty (
  name text primary key,
  holder text,
  expires_at timestamptz not null default '-infinity'
);
insert into duty (name) values ('retention');
