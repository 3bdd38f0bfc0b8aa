-- With a secret, posts of formats that are signed have to be signed with it; `signed_only`: every post. Null: no secret.
alter table integration add column incoming_secret_sealed text;
alter table integration add column signed_only boolean not null default false
  constraint integration_signed_only_check check (not signed_only or incoming_secret_sealed is not null);

-- What admits a post is compared with this, so that a change of the secret holds on all nodes with its commit. Null: the
-- hash of the token is compared.
alter table integration add column admission text;
