alter table membership
  -- Whether the account itself asked for the membership. What others did counts against another bound.
  add column requested boolean not null default true,
  -- The member was owner or admin, is it no longer, and knows the group's integration token.
  add column knows_token boolean not null default false;

-- Who was removed from a group. Invitations up to `last_invite` let neither the account nor its bots back in: the numbers
-- rise under the head's lock, so that no clock decides.
create table group_removal (
  conversation_id bigint not null references conversation on delete cascade,
  account_id bigint not null references account on delete cascade,
  last_invite bigint not null,
  primary key (conversation_id, account_id)
);
