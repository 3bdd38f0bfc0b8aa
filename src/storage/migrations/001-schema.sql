-- Every sender is an account: a person, a bot, or the integration of a group (kind webhook, without a nick).
create table account (
  id bigint generated always as identity primary key,
  kind text not null check (kind in ('user', 'bot', 'webhook')),
  nick text unique check (nick = lower(nick)),
  name text not null,
  about text,
  role text not null default 'user' check (role in ('admin', 'user', 'bot')),
  created_at timestamptz not null default now(),
  deactivated_at timestamptz,
  -- A bot belongs to the person that made it.
  owner_id bigint references account,
  constraint account_webhook_check check ((kind = 'webhook') = (nick is null)),
  constraint account_owner_check check (owner_id is null or kind = 'bot')
);
create index account_owner on account (owner_id) where owner_id is not null;

-- A proven address of an account: e-mail in lower case, or a telephone number in E.164.
create table account_address (
  kind text not null check (kind in ('email', 'phone')),
  address text not null,
  account_id bigint not null references account,
  verified_at timestamptz not null default now(),
  primary key (kind, address)
);
create index account_address_account on account_address (account_id);

-- The right to act as an account. The server looks it up by the SHA-256 (hex) of its token. A person's session may do
-- everything that the person may; a bot's token has scopes.
create table session (
  id bigint generated always as identity primary key,
  account_id bigint not null references account,
  token_hash text not null unique,
  -- The user's name for it: a device or a program.
  label text not null,
  -- Null: a person's session.
  scopes text[],
  created_at timestamptz not null default now(),
  last_used_at timestamptz not null default now(),
  expires_at timestamptz
);
create index session_account on session (account_id);
create index session_expires_at on session (expires_at) where expires_at is not null;

-- An attempt to prove an address. The row keeps the address until the attempt ends, so that the proof can go to an
-- account. It stays for at least a day, because the limits on codes count these rows.
create table activation (
  -- SHA-256 (hex) of the transaction's id, which only the client that started it knows.
  transaction_hash text primary key,
  provider text not null check (provider in ('gate', 'email')),
  kind text not null check (kind in ('email', 'phone')),
  address text not null,
  -- A keyed hash of the client's network address, for rate limits.
  source_hash text not null,
  -- The same hash of the /48 network of an IPv6 source; for IPv4 it equals source_hash.
  network_hash text not null,
  -- Whether the address belonged to an account at the start: codes to accounts have a budget of their own.
  for_account boolean not null default false,
  -- False: the server sends no code, and the client cannot tell.
  sends_code boolean not null,
  -- What checks the code: a keyed hash of our own code, or the gate's reference. Null: there is no code yet.
  verifier text,
  attempts_left smallint not null check (attempts_left >= 0),
  sent_at timestamptz not null,
  expires_at timestamptz not null,
  verified_at timestamptz
);
create index activation_address on activation (kind, address, sent_at);
create index activation_source on activation (source_hash, sent_at);
create index activation_network on activation (network_hash, sent_at);
create index activation_sent_at on activation (sent_at);

-- An administrator makes such a link. The first person that opens it is signed in as the account.
create table sign_in_link (
  token_hash text primary key,
  account_id bigint not null references account,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null
);
create index sign_in_link_account on sign_in_link (account_id);

-- The account has blocked the other one.
create table block (
  account_id bigint not null references account,
  blocked_id bigint not null references account,
  created_at timestamptz not null default now(),
  primary key (account_id, blocked_id),
  check (account_id <> blocked_id)
);

create table conversation (
  id bigint generated always as identity primary key,
  kind text not null check (kind in ('group', 'private')),
  title text,
  about text,
  created_at timestamptz not null default now(),
  -- Every account of the installation may find and join a public group.
  public boolean not null default false,
  constraint conversation_title_check check ((kind = 'group') = (title is not null)),
  constraint conversation_public_check check (kind = 'group' or not public),
  -- Tables that only groups may have rows in refer to both columns.
  unique (id, kind)
);
create index conversation_public on conversation (lower(title), id) where public;

-- The counters of a conversation, apart from its description. Every post locks this row; `for update` on the wide row
-- would block all foreign-key checks against it. Half-filled pages keep updates in the page. No index covers a column
-- that every post changes: one on last_at made a flush of 500 posts 9 to 19 % slower, because updates left their page.
-- It saved only 4 to 8 ms of the sweep every 5 s (100,000 groups, 20,000 hooks).
create table conversation_head (
  conversation_id bigint primary key references conversation on delete cascade,
  last_seq bigint not null default 0,
  last_rev bigint not null default 0,
  last_at timestamptz not null default '-infinity',
  -- Messages below it were removed by a retention rule. Their rows may still be there: every reader asks for this one.
  first_seq bigint not null default 1,
  -- Here and not in conversation, because the statement that writes messages reads it under the lock it already holds.
  archived_at timestamptz,
  -- Whether a reverse webhook asks for events. Each change of a message sees it in the row that it has locked, so that
  -- changes in all other conversations write no event.
  wants_events boolean not null default false,
  -- The epoch of the last change, and what last_rev was before the first change in it. Changes write both, so that no
  -- raise of the epoch touches all heads.
  epoch integer not null default 0,
  epoch_rev bigint not null default 0,
  constraint conversation_head_first_seq_check check (first_seq between 1 and last_seq + 1)
) with (fillfactor = 50);

create table membership (
  conversation_id bigint not null references conversation on delete cascade,
  account_id bigint not null references account,
  role text not null check (role in ('owner', 'admin', 'member')),
  joined_at timestamptz not null default now(),
  read_seq bigint not null default 0,
  -- Whether the account itself asked for the membership. Memberships that others made count against another limit.
  requested boolean not null default true,
  -- The member was owner or admin, is neither now, and still knows the integration token of the group.
  knows_token boolean not null default false,
  primary key (conversation_id, account_id)
  -- Every write and every read moves the member's read position: pages keep room for that update.
) with (fillfactor = 80);
create index membership_account on membership (account_id);
-- A group has at most one owner.
create unique index membership_owner on membership (conversation_id) where role = 'owner';

-- The only private conversation of two people.
create table private_conversation (
  conversation_id bigint primary key,
  kind text not null default 'private' check (kind = 'private'),
  low_id bigint not null references account,
  high_id bigint not null references account,
  unique (low_id, high_id),
  check (low_id < high_id),
  foreign key (conversation_id, kind) references conversation (id, kind) on delete cascade
);

-- The right to post into a group and to manage its reverse webhooks. The server looks the token up by its SHA-256
-- (hex). It also keeps the token sealed, so that the group's information can show it again.
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

-- An invitation into a group: everybody with its link may join. The token is sealed, so that the link can be shown
-- again.
create table group_invite (
  id bigint generated always as identity primary key,
  conversation_id bigint not null,
  kind text not null default 'group' check (kind = 'group'),
  token_hash text not null unique,
  token_sealed text not null,
  created_by bigint references account,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  -- Null: no limit.
  max_uses integer check (max_uses > 0),
  uses integer not null default 0,
  check (max_uses is null or uses <= max_uses),
  foreign key (conversation_id, kind) references conversation (id, kind) on delete cascade
);
create index group_invite_conversation on group_invite (conversation_id);

-- A removed member. Invitations up to `last_invite_id` readmit neither the account nor its bots. Invitations get their
-- numbers under the head's lock, so that the order does not depend on a clock.
create table group_removal (
  conversation_id bigint not null references conversation on delete cascade,
  account_id bigint not null references account on delete cascade,
  last_invite_id bigint not null,
  primary key (conversation_id, account_id)
);

-- The log. It has no foreign keys: they cost 10 to 20 % of the rate, and the head that numbers the row has them.
create table message (
  conversation_id bigint not null,
  seq bigint not null,
  rev bigint not null,
  sender_id bigint not null,
  text text not null,
  label text,
  icon_url text,
  hops smallint not null default 0,
  -- The epoch of the log in which the message was written; an edit does not change it.
  epoch integer not null default 0,
  sent_at timestamptz not null,
  edited_at timestamptz,
  deleted_at timestamptz,
  -- The files as readers see them: [{"id","name","type","size"}]; null: none. The rows of `file` decide who may read a
  -- file and when it is removed.
  attachments jsonb,
  primary key (conversation_id, seq)
);
-- Clients follow rev. The index is unique, because two changes with one rev would hide each other.
create unique index message_rev on message (conversation_id, rev);

-- Changes that are not messages (joined, renamed, hook parked): they take a rev and no seq.
create table notice (
  conversation_id bigint not null,
  rev bigint not null,
  kind text not null,
  actor_id bigint,
  details jsonb not null default '{}',
  at timestamptz not null default now(),
  -- The newest message at that moment: the notice stands behind it.
  after_seq bigint not null default 0,
  epoch integer not null default 0,
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
-- Not BRIN: the pages of deleted keys take new ones, so that each range of pages would hold all times.
create index idempotency_key_created_at on idempotency_key (created_at);

-- What is known of an alert that its sender keeps up to date: each post with the same key edits the message that shows it.
-- Rows stay for some days after the alert is resolved.
create table alert (
  conversation_id bigint not null,
  -- The format that the key is of: two formats may use the same one.
  source text not null,
  key text not null,
  -- The message that shows it.
  seq bigint not null,
  state text not null check (state in ('firing', 'resolved')),
  -- When it began to fire.
  since timestamptz not null,
  -- The sender's own alerts: [{"fingerprint","startsAt","state"}]. An update that tells only what they say changes nothing.
  alerts jsonb not null default '[]',
  -- Every write raises it. The server decides what a post changes from the row as it read it, and writes that only while
  -- the row is still the same.
  version bigint not null default 1,
  updated_at timestamptz not null default now(),
  -- When its newest message was posted; edits do not count.
  posted_at timestamptz not null default now(),
  constraint alert_alerts_check check (jsonb_array_length(alerts) <= 500),
  primary key (conversation_id, source, key)
) with (fillfactor = 80);
-- For retention.
create index alert_state_updated_at on alert (state, updated_at);

-- How far the search indexer is. It derives the search index and the mentions from messages soon after the commit, so
-- that no post waits for them. Every change of the conversation up to `indexed_rev` is done.
create table search_index_progress (
  conversation_id bigint primary key references conversation on delete cascade,
  indexed_rev bigint not null default 0
) with (fillfactor = 50);

create table search_index (
  conversation_id bigint not null,
  seq bigint not null,
  -- Copied from the message: a search for a common word reads from the newest row on and sorts no other matches.
  sent_at timestamptz not null,
  document tsvector not null,
  primary key (conversation_id, seq)
);
create index search_index_document on search_index using gin (document);
create index search_index_sent_at on search_index (sent_at, conversation_id, seq);

create table mention (
  account_id bigint not null references account,
  conversation_id bigint not null references conversation on delete cascade,
  seq bigint not null,
  primary key (account_id, conversation_id, seq)
);
create index mention_message on mention (conversation_id, seq);

-- A reverse webhook: a cursor into the log of a group.
create table reverse_hook (
  -- Numbers of 32 bits, as the interfaces promise.
  id bigint generated always as identity (maxvalue 2147483647),
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
  -- The hook never sees messages up to start_seq: they are older than the hook.
  start_seq bigint not null,
  -- Every message up to the cursor is delivered, dead-lettered, or has a row in delivery_retry.
  cursor bigint not null,
  -- The changes that the hook asks for besides new messages.
  events text[] not null default '{}',
  -- The same as the two above, by rev and for events; null: the hook asks for none. It starts at the conversation's
  -- last_rev, read under the head's lock.
  event_start_rev bigint,
  event_cursor bigint,
  -- The last message of a failed batch. The batch begins behind the cursor, and the server repeats the same range.
  batch_last_seq bigint,
  -- The server sends messages up to here one by one, because the receiver rejected a batch of them.
  unbatched_until bigint,
  -- The same as the two above for events, by rev.
  batch_last_rev bigint,
  unbatched_until_rev bigint,
  -- How often the receiver answered 400, 413 or 422 to the next message, in total. After the fifth the message may be
  -- dead-lettered.
  rejections integer not null default 0,
  -- Every control write raises it; the server discards a settlement of an older generation.
  generation bigint not null default 0,
  -- The generation of the last write that moved the cursor by hand (redeliver, skip the backlog). An attempt of an
  -- older generation says nothing about the new position. A later attempt counts even if the hook was paused or
  -- changed.
  cursor_generation bigint not null default 0,
  paused_at timestamptz,
  pinged_at timestamptz,
  failures integer not null default 0,
  failing_since timestamptz,
  parked_at timestamptz,
  next_attempt_at timestamptz,
  last_success_at timestamptz,
  last_error_at timestamptz,
  last_error_category text,
  last_error_code integer,
  created_at timestamptz not null default now(),
  -- The row of a removed hook stays for a while, so that a client can restore a hook that its target's 410 removed.
  removed_at timestamptz,
  removed_by text check (removed_by in ('client', 'target')),
  constraint reverse_hook_cursor_check check (cursor >= start_seq),
  constraint reverse_hook_events_check
    check (events <@ array['message.updated', 'message.deleted'] and (events = '{}') = (event_cursor is null)),
  constraint reverse_hook_event_cursor_check
    check ((event_cursor is null) = (event_start_rev is null) and event_cursor >= event_start_rev),
  constraint reverse_hook_removed_check check ((removed_at is null) = (removed_by is null)),
  -- With the conversation, as every key of what belongs to one: such tables can be split by it.
  primary key (id, conversation_id),
  foreign key (conversation_id, kind) references conversation (id, kind) on delete cascade
  -- Every delivery updates its row: pages keep room for that.
) with (fillfactor = 70);
create unique index reverse_hook_url on reverse_hook (conversation_id, url) where removed_at is null;
create index reverse_hook_removed_at on reverse_hook (removed_at) where removed_at is not null;
-- The sweep looks for events of these hooks only. It covers no column that a settlement changes.
create index reverse_hook_events on reverse_hook (conversation_id) where events <> '{}' and removed_at is null;

-- Changes of messages, for the reverse webhooks that ask for them. Rows hold no text: a delivery is made of the message
-- as it is then. Rows stay for some days, whether they were delivered or not.
create table hook_event (
  conversation_id bigint not null,
  rev bigint not null,
  -- The newest message at the change: the event comes behind it and before the next one.
  after_seq bigint not null,
  -- The message that was changed.
  seq bigint not null,
  kind text not null check (kind in ('message.updated', 'message.deleted')),
  actor_id bigint not null,
  hops smallint not null default 0,
  -- What only some kinds have to say.
  data jsonb,
  at timestamptz not null,
  epoch integer not null default 0,
  primary key (conversation_id, rev)
);
create index hook_event_at on hook_event using brin (at);

-- A request that the server repeats apart from the others. It holds failed messages and events of a hook without order,
-- or messages that a client asked for again by id.
create table delivery_retry (
  conversation_id bigint not null,
  hook_id bigint not null,
  -- Of messages; 0 for events.
  seq bigint not null,
  last_seq bigint not null,
  attempts integer not null,
  next_at timestamptz not null,
  -- Of events; 0 for messages.
  rev bigint not null default 0,
  last_rev bigint not null default 0,
  -- The hook's generation since a client asked for it. An older lane, which may have sent it before that, does not end it.
  generation bigint not null default 0,
  constraint delivery_retry_kind_check check ((seq = 0) <> (rev = 0)),
  primary key (hook_id, seq, rev, conversation_id),
  foreign key (hook_id, conversation_id) references reverse_hook on delete cascade
);
-- Every query asks for the next due row of one hook.
create index delivery_retry_due on delivery_retry (hook_id, next_at);

-- The delivery log. Each day is a partition, so that the server drops old days and deletes no rows.
create table delivery_attempt (
  conversation_id bigint not null,
  hook_id bigint not null,
  seq bigint not null,
  last_seq bigint not null,
  attempt integer not null,
  at timestamptz not null,
  outcome text not null,
  category text,
  code integer,
  duration_ms integer not null,
  -- Of events, whose seqs are those of the messages that were changed; 0 for messages.
  rev bigint not null default 0,
  -- Null for messages.
  last_rev bigint
) partition by range (at);
-- Unique: a settlement repeated after an unknown outcome logs its attempt once.
create unique index delivery_attempt_hook on delivery_attempt (hook_id, at, seq, rev, attempt, conversation_id);
-- Takes rows outside the partitions of days, from a clock set far ahead; `storage/retention/retention.ts` moves them.
create table delivery_attempt_default partition of delivery_attempt default;

-- Requests to each hook in each five minutes, of which there were any. Each settlement adds what it logs.
create table hook_stats (
  conversation_id bigint not null,
  hook_id bigint not null,
  -- When they begin.
  five_minutes timestamptz not null,
  delivered integer not null,
  failed integer not null,
  -- How many of both took how long: `DURATION_BOUNDS_MS` in `model/hook-stats.ts` lists where one count ends.
  durations integer[] not null,
  primary key (conversation_id, hook_id, five_minutes)
  -- Settlements update the row of the current five minutes: pages keep room for that.
) with (fillfactor = 80);
-- For retention.
create index hook_stats_five_minutes on hook_stats (five_minutes);

-- Lanes belong to partitions (hook id modulo 64), and each partition to one process at a time. The epoch rises with
-- every change of the holder and fences the settlements of earlier holders; in a new timeline of PostgreSQL, where the last
-- claims may be missing, it rises far.
create table lease (
  partition smallint primary key check (partition between 0 and 63),
  holder text,
  epoch bigint not null default 0,
  timeline integer not null default 1,
  expires_at timestamptz not null default '-infinity'
) with (fillfactor = 25);
insert into lease (partition) select generate_series(0, 63);

-- The processes that share this database. Each prolongs its row together with its leases, so that all processes know
-- the total and take equal shares of the partitions. A process without leases appears only here.
create table node (
  id text primary key,
  expires_at timestamptz not null,
  -- The last timeline of PostgreSQL in which the node compared what it knows of the log with the database (0: none), and
  -- what it found. In a new timeline nobody writes to the log before all nodes have, or time is up.
  compared_timeline integer not null default 0,
  finding text check (finding in ('complete', 'missing', 'unknown'))
) with (fillfactor = 25);

-- Work that one node does for all. The holder may work until `expires_at`, and prolongs that while it works.
create table job_lock (
  name text primary key,
  holder text,
  expires_at timestamptz not null default '-infinity'
);
-- retention: deletes what is out of date. files: removes files from the store.
insert into job_lock (name) values ('retention'), ('files');

-- A phone or a browser that gets push notifications for the session that registered it.
create table device (
  id bigint generated always as identity primary key,
  account_id bigint not null references account,
  -- A session that ends takes its devices along.
  session_id bigint not null references session on delete cascade,
  kind text not null check (kind in ('google', 'apple', 'web')),
  -- SHA-256 (hex) of the vendor's token: a phone that changes hands belongs to the account that registered it last.
  token_hash text not null,
  -- The vendor's token, and the keys of a browser. Sealed, because everybody that has them can push to the device.
  token_sealed text not null,
  -- Google's project, Apple's bundle; null: the first one of the configuration.
  app text,
  label text,
  created_at timestamptz not null default now(),
  last_seen_at timestamptz not null default now(),
  unique (kind, token_hash)
);
create index device_account on device (account_id);
create index device_session on device (session_id);

-- Which messages notify a member; without a row all of them.
create table notification_setting (
  conversation_id bigint not null,
  account_id bigint not null,
  level text not null default 'all' check (level in ('all', 'mentions', 'nothing')),
  muted_until timestamptz,
  primary key (conversation_id, account_id),
  foreign key (conversation_id, account_id) references membership on delete cascade
);
create index notification_setting_account on notification_setting (account_id);

-- The last message of a conversation that was turned into pushes. Without a row the worker starts at the first message;
-- it skips messages older than a day.
create table push_cursor (
  conversation_id bigint primary key references conversation on delete cascade,
  pushed_seq bigint not null
) with (fillfactor = 50);

-- A push that waits to be sent: one row for each device and conversation, for any number of messages.
create table push_pending (
  -- Refers to a device without a foreign key: its lookup and lock for each row took longer than the write of the row.
  -- If the device disappears meanwhile, the claim of the row finds no device and ends the push.
  device_id bigint not null,
  conversation_id bigint not null,
  -- Copied from the device, so that each vendor has a queue of its own.
  kind text not null check (kind in ('google', 'apple', 'web')),
  first_seq bigint not null,
  last_seq bigint not null,
  attempts integer not null default 0,
  -- A push expires a day after it.
  created_at timestamptz not null default now(),
  next_at timestamptz not null default now(),
  -- Until then the claim belongs to one sender. No index covers it: with room in the page a claim writes only the row.
  claimed_until timestamptz not null default '-infinity',
  -- Every claim raises it, so that an earlier claimant cannot settle the push.
  claim_number bigint not null default 0,
  primary key (device_id, conversation_id),
  check (first_seq <= last_seq)
) with (fillfactor = 50);
create index push_pending_next on push_pending (kind, next_at);

-- Every removal of a device removes its pending pushes, also when a session ends. `or replace`, because the function
-- may exist: a restore into an unused database of Klatch drops only the tables.
create or replace function delete_pending_pushes() returns trigger language plpgsql as $$
begin
  delete from push_pending p using deleted where p.device_id = deleted.id;
  return null;
end $$;
create trigger device_deleted after delete on device referencing old table as deleted
for each statement execute function delete_pending_pushes();

-- Failures of devices and pushes, for administrators. Rows stay for some days.
create table push_log (
  id bigint generated always as identity primary key,
  at timestamptz not null default now(),
  account_id bigint not null references account,
  kind text not null,
  -- removed: the vendor does not know the device any more. expired: not accepted within a day. rejected: never
  -- accepted.
  event text not null check (event in ('removed', 'expired', 'rejected')),
  category text not null,
  code integer
);
create index push_log_at on push_log (at);

-- Files. A row exists before the first byte of its file and until after the last one, so that the store holds nothing
-- without a row.
create table file (
  -- Random, and the file's name in the store: no user input becomes part of a path. The collation is the byte order in
  -- which stores list names, so that a check can compare the two page by page.
  id text collate "C" primary key check (id ~ '^[A-Za-z0-9_-]{22}$'),
  owner_id bigint not null references account,
  -- The owner's name for it, without anything that looks like a path.
  name text not null,
  -- Detected from the content as far as possible; the server does not trust the declared type.
  type text not null,
  -- The bytes that `file_usage` counts. During an upload: the declared size, or what was granted so far if the size is
  -- unknown. Later: the real size.
  size bigint check (size >= 0),
  -- Bytes that are stored safely.
  received bigint not null default 0 check (received >= 0),
  -- uploading: not complete. stored: complete. lost: a check found that the store does not have it.
  -- removed: waits to be removed from the store; then the row is deleted.
  state text not null default 'uploading' check (state in ('uploading', 'stored', 'lost', 'removed')),
  -- True: the file comes in parts, each in its own request. False: one request brings all of it.
  resumable boolean not null default false,
  -- The state of the upload, which only the store understands.
  upload jsonb,
  -- The message that the file is attached to. Null: none yet; a file that stays without one is removed later.
  conversation_id bigint references conversation on delete set null,
  seq bigint,
  created_at timestamptz not null default now(),
  -- When the last part arrived, or of the last change.
  updated_at timestamptz not null default now(),
  constraint file_complete_check check (state = 'uploading' or size is not null),
  constraint file_attached_check check (seq is null or state <> 'uploading')
) with (fillfactor = 80);
create index file_owner on file (owner_id);
create index file_message on file (conversation_id, seq) where seq is not null;
create index file_unattached on file (updated_at) where seq is null or state = 'removed';

-- The storage that the files of each account use, and of all accounts together (account 0). Every change of a file
-- updates it under a lock, so that limits hold for parallel uploads.
create table file_usage (
  account_id bigint primary key,
  bytes bigint not null default 0 check (bytes >= 0),
  files bigint not null default 0 check (files >= 0)
) with (fillfactor = 50);

-- Single values: the canary that shows whether `secret` is the one that sealed this database, and the epoch of the log
-- with the one before it (`log_epoch`, `previous_log_epoch`; without rows 0).
create table setting (
  name text primary key,
  value text not null
);
