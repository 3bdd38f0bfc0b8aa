-- The secret that callers of the group sign their posts with; null: the group has none. Posts must be signed in formats
-- whose senders sign, and with `signed_only` in all formats.
alter table integration add column incoming_secret_sealed text;
alter table integration add column signed_only boolean not null default false
  constraint integration_signed_only_check check (not signed_only or incoming_secret_sealed is not null);

-- A post is written only if this value has not changed since the post was checked. So a change of the secret takes
-- effect on all nodes with its commit. Null: the hash of the token is compared instead.
alter table integration add column admission text;
