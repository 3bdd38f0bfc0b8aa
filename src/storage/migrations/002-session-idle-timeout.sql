-- After so long without use the session ends; each use moves expires_at. Null: expires_at stays as it is.
alter table session add column idle_timeout_s integer check (idle_timeout_s > 0);
