-- The session ends after this time without use: each use moves expires_at. Null: a use does not change expires_at.
alter table session add column idle_timeout_s integer check (idle_timeout_s > 0);
