-- Accounts are all that can send: people, bots, and one for each group's integration (kind webhook, no nick).
create table account (
  id bigint generated always as identity primary key,
  kind text not null check (kind in ('user', 'bot', 'webhook')),
  nick text unique check (nick = lower(nick)),
  name text not null,
  about text,
  role text not null default 'user' check (role in ('admin', 'user', 'bot')),
  created_at timestamptz not null default now(),
  deactivated_at timestamptz,
  check ((kind = 'webhook') = (nick is null))
);

create table conversation (
  id bigint generated always as identity primary key,
  kind text not null check (kind in ('group', 'private')),
  title text,
  about text,
  created_at timestamptz not null default now(),
  check ((kind = 'group') = (title is not null)),
  -- What only a group may have refers to both columns.
  unique (id, kind)
);

-- The counters of a conversation, apart from its description: every post locks this row, and `for update` on the wide
-- one would block the foreign-key checks of everybody who refers to it. Half-filled pages keep updates in the page, and
-- no index on what every post changes: one on last_at made a flush of 500 posts 9 to 19 % slower, as no update could
-- stay in its page any more, and saved 4 to 8 ms of the sweep every 5 s (100,000 groups, 20,000 hooks).
create table conversation_head (
  conversation_id bigint primary key references conversation on delete cascade,
  last_seq bigint not null default 0,
  last_rev bigint not null default 0,
  last_at timestamptz not null default '-infinity',
  -- Here and not in conversation: the statement that writes messages reads it beneath the lock it holds anyway.
  archived_at timestamptz
) with (fillfactor = 50);

create table membership (
  conversation_id bigint not null references conversation on delete cascade,
  account_id bigint not null references account,
  role text not null check (role in ('owner', 'admin', 'member')),
  joined_at timestamptz not null default now(),
  read_seq bigint not null default 0,
  primary key (conversation_id, account_id)
);
create index membership_account on membership (account_id);

-- The right to post into a group and to manage its reverse webhooks. The token is looked up by its SHA-256 (hex) and
-- kept sealed, so that the group's information can show it again.
create table integration (
  conversation_id bigint primary key,
  kind text not null default 'group' check (kind = 'group'),
  account_id bigint not null references account,
  token_hash text not null unique,
  token_sealed text not null,
  created_at timestamptz not null default now(),
  rotated_at timestamptz,
  foreign key (conversation_id, kind) references conversation (id, kind) on delete cascade
);

-- The log. No foreign keys: they cost 10 to 20 % of the rate, and the head that numbers the row has them.
create table message (
  conversation_id bigint not null,
  seq bigint not null,
  rev bigint not null,
  sender_id bigint not null,
  text text not null,
  label text,
  icon_url text,
  hops smallint not null default 0,
  sent_at timestamptz not null,
  edited_at timestamptz,
  deleted_at timestamptz,
  primary key (conversation_id, seq)
);
-- Clients follow rev. A unique index, because two changes with one rev would hide each other.
create unique index message_rev on message (conversation_id, rev);

-- Changes that are not messages (joined, renamed, hook parked): they take a rev and no seq.
create table notice (
  conversation_id bigint not null,
  rev bigint not null,
  kind text not null,
  actor_id bigint,
  details jsonb not null default '{}',
  at timestamptz not null default now(),
  primary key (conversation_id, rev)
);

create table idempotency_key (
  conversation_id bigint not null,
  key text not null,
  seq bigint not null,
  body_hash text not null,
  created_at timestamptz not null default now(),
  primary key (conversation_id, key)
);
create index idempotency_key_created_at on idempotency_key using brin (created_at);

-- A reverse webhook: a cursor into the log of a group.
create table reverse_hook (
  id integer generated always as identity primary key,
  conversation_id bigint not null,
  kind text not null default 'group' check (kind = 'group'),
  url text not null,
  description text,
  ordering text not null default 'strict' check (ordering in ('strict', 'none')),
  batch smallint not null default 1 check (batch between 1 and 100),
  signature text not null default 'v1' check (signature in ('v1', 'v1a', 'both')),
  skip text[] not null default '{}',
  secret_sealed text not null,
  -- After a rotation both secrets sign until this moment.
  old_secret_sealed text,
  old_secret_until timestamptz,
  -- Messages up to start_seq were there before the hook: it never sees them.
  start_seq bigint not null,
  -- Everything up to the cursor is delivered, set aside, or has a row in delivery_retry.
  cursor bigint not null,
  -- The range of a batch that failed: it is repeated as it was.
  batch_first bigint,
  batch_last bigint,
  -- Raised by every control write; a settlement of an older generation is discarded.
  generation bigint not null default 0,
  paused_at timestamptz,
  failures integer not null default 0,
  failing_since timestamptz,
  parked_at timestamptz,
  next_attempt_at timestamptz,
  last_success_at timestamptz,
  last_error_at timestamptz,
  last_error_category text,
  last_error_code integer,
  created_at timestamptz not null default now(),
  -- Removed hooks stay for a while, so that one removed by its target's 410 can be restored.
  removed_at timestamptz,
  removed_by text check (removed_by in ('client', 'target')),
  check (cursor >= start_seq),
  check ((removed_at is null) = (removed_by is null)),
  foreign key (conversation_id, kind) references conversation (id, kind) on delete cascade
  -- Every delivery updates its row: room for that in the same page.
) with (fillfactor = 70);
create unique index reverse_hook_url on reverse_hook (conversation_id, url) where removed_at is null;
create index reverse_hook_removed_at on reverse_hook (removed_at) where removed_at is not null;

-- Failing messages of a hook that does not ask for order.
create table delivery_retry (
  hook_id integer not null references reverse_hook on delete cascade,
  seq bigint not null,
  attempts integer not null,
  next_at timestamptz not null,
  primary key (hook_id, seq)
);
create index delivery_retry_next_at on delivery_retry (next_at);

-- The delivery log, one partition a day so that old days are dropped instead of deleted.
create table delivery_attempt (
  hook_id integer not null,
  seq bigint not null,
  last_seq bigint not null,
  attempt integer not null,
  at timestamptz not null,
  outcome text not null,
  category text,
  code integer,
  duration_ms integer not null
) partition by range (at);
-- Unique, so that a settlement repeated after an unknown outcome logs its attempt once.
create unique index delivery_attempt_hook on delivery_attempt (hook_id, at, seq, attempt);

-- Lanes belong to partitions (hook id modulo 64), and partitions to one process at a time. The epoch rises with every
-- change of hands and fences the settlements of whoever held the lease before.
create table lease (
  partition smallint primary key check (partition between 0 and 63),
  holder text,
  epoch bigint not null default 0,
  expires_at timestamptz not null default '-infinity'
) with (fillfactor = 25);
insert into lease (partition) select generate_series(0, 63);

-- Single values, such as the canary that tells whether `secret` is the one this database was made with.
create table setting (
  name text primary key,
  value text not null
);
-- Catches what no day's partition takes (a clock set far ahead); `storage/retention.ts` moves its rows.
create table delivery_attempt_default partition of delivery_attempt default;
