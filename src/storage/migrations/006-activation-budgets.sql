alter table activation
  -- The same hash of the /48 network around an IPv6 source; of an IPv4 source its own. Null: an older program began it.
  add column site_hash text,
  -- Whether the address belonged to an account when the activation began: codes to accounts have a budget of their own.
  add column to_account boolean not null default false;
create index activation_site on activation (site_hash, sent_at);
