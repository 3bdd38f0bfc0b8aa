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

-- The right to act as an account. The server finds the row by the SHA-256 (hex) of the token. A person's session may do
-- everything that the person may; a bot's token has scopes.
create table session (
  id bigint generated always as identity primary key,
  account_id bigint not null references account,
  token_hash text not null unique,
  -- A name that the user chose, such as that of a device or a program.
  label text not null,
  -- Null: a person's session.
  scopes text[],
  created_at timestamptz not null default now(),
  last_used_at timestamptz not null default now(),
  expires_at timestamptz
);
create index session_account on session (account_id);
create index session_expires_at on session (expires_at) where expires_at is not null;

-- An activation: an attempt to prove an address. The row stores the address, so that an account can get it after the
-- proof. The row stays for at least a day, because the limits on codes count these rows.
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
  -- Whether an account had the address at the start. Codes to such addresses count against a separate limit.
  for_account boolean not null default false,
  -- False: the server sends no code, but answers the client as if it did.
  sends_code boolean not null,
  -- The value that the server checks a code with: a keyed hash of the code that it sent, or the reference that the
  -- activation gate gave. Null: there is no code yet.
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

-- A link that an administrator creates. The first person who opens it is signed in as the account.
create table sign_in_link (
  token_hash text primary key,
  account_id bigint not null references account,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null
);
create index sign_in_link_account on sign_in_link (account_id);

-- `account_id` has blocked `blocked_id`.
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
  -- Tables for one kind of conversation have a foreign key to both columns.
  unique (id, kind)
);
create index conversation_public on conversation (lower(title), id) where public;

-- The counters of a conversation. They have a table of their own, because every post locks this row: `for update` on
-- the wide row of `conversation` would block all foreign-key checks against it. Half-filled pages let PostgreSQL update
-- a row within its page (HOT), but only if no index covers a changed column. An index on last_at made a flush of 500
-- posts 9 to 19 % slower. It saved only 4 to 8 ms of the sweep, which runs every 5 s (100,000 groups, 20,000 hooks).
create table conversation_head (
  conversation_id bigint primary key references conversation on delete cascade,
  last_seq bigint not null default 0,
  last_rev bigint not null default 0,
  last_at timestamptz not null default '-infinity',
  -- Retention removed the messages before this seq. Their rows may still exist, so readers compare with this column.
  first_seq bigint not null default 1,
  -- This column is not in `conversation`: the statement that writes messages reads it from the row that it has locked.
  archived_at timestamptz,
  -- Whether a hook of the group requests events. A change of a message reads this column from the row that it has
  -- locked, and writes an event only if the column is true.
  wants_events boolean not null default false,
  -- The log epoch of the last change, and the value of last_rev before the first change in that epoch. Each change
  -- writes both, so that a new epoch needs no update of all heads.
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
  -- Whether the account itself requested the membership. Memberships that others created count against another limit.
  requested boolean not null default true,
  -- The member was owner or admin and is neither now, but still knows the group's integration token.
  knows_token boolean not null default false,
  primary key (conversation_id, account_id)
  -- Each message that a member sends or reads updates read_seq, so pages keep room for that.
) with (fillfactor = 80);
create index membership_account on membership (account_id);
-- A group has at most one owner.
create unique index membership_owner on membership (conversation_id) where role = 'owner';

-- Two people have at most one private conversation.
create table private_conversation (
  conversation_id bigint primary key,
  kind text not null default 'private' check (kind = 'private'),
  low_id bigint not null references account,
  high_id bigint not null references account,
  unique (low_id, high_id),
  check (low_id < high_id),
  foreign key (conversation_id, kind) references conversation (id, kind) on delete cascade
);

-- The right to post into a group and to manage its hooks. The server finds the row by the SHA-256 (hex) of the
-- integration token. The row also stores the sealed token, so that the server can show the token again.
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

-- A member that was removed. Invitations with ids up to `last_invite_id` readmit neither the account nor its bots.
-- Invitations get their ids under the head's lock, so that the order does not depend on a clock.
create table group_removal (
  conversation_id bigint not null references conversation on delete cascade,
  account_id bigint not null references account on delete cascade,
  last_invite_id bigint not null,
  primary key (conversation_id, account_id)
);

-- The message log. Foreign keys would cost 10 to 20 % of the rate of posts. The head, which numbers the row, has them.
create table message (
  conversation_id bigint not null,
  seq bigint not null,
  rev bigint not null,
  sender_id bigint not null,
  text text not null,
  label text,
  icon_url text,
  hops smallint not null default 0,
  -- The log epoch in which the message was written; an edit does not change it.
  epoch integer not null default 0,
  sent_at timestamptz not null,
  edited_at timestamptz,
  deleted_at timestamptz,
  -- The files as readers see them: [{"id","name","type","size"}]; null: none. The rows of `file` decide who may read a
  -- file and when it is removed.
  attachments jsonb,
  primary key (conversation_id, seq)
);
-- Clients follow rev. The index is unique, because readers would miss one of two changes with the same rev.
create unique index message_rev on message (conversation_id, rev);

-- Changes that are not messages (joined, renamed, hook parked). They have a rev and no seq.
create table notice (
  conversation_id bigint not null,
  rev bigint not null,
  kind text not null,
  actor_id bigint,
  details jsonb not null default '{}',
  at timestamptz not null default now(),
  -- The newest message when the notice was written: clients show the notice after it.
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
-- The index is not BRIN: new keys fill the pages of deleted ones, so that each range of pages would contain keys of all
-- ages.
create index idempotency_key_created_at on idempotency_key (created_at);

-- The state of an alert: each post with the same key edits the message that shows it. Retention removes a row some days
-- after its last update (`storage/retention/alert-expiry.ts`).
create table alert (
  conversation_id bigint not null,
  -- The format of the key: two formats may use the same key.
  source text not null,
  key text not null,
  -- The seq of the message that shows the alert.
  seq bigint not null,
  state text not null check (state in ('firing', 'resolved')),
  -- When the alert began to fire.
  since timestamptz not null,
  -- The sender's alerts: [{"fingerprint","startsAt","state"}]. An update that repeats only these states changes
  -- nothing.
  alerts jsonb not null default '[]',
  -- Every write increments it. The server reads the row to decide what a post changes, and writes the change only if
  -- the version is still the same.
  version bigint not null default 1,
  updated_at timestamptz not null default now(),
  -- When the newest message of the alert was posted; edits do not count.
  posted_at timestamptz not null default now(),
  constraint alert_alerts_check check (jsonb_array_length(alerts) <= 500),
  primary key (conversation_id, source, key)
) with (fillfactor = 80);
-- Retention finds rows to delete by their state and their last update.
create index alert_state_updated_at on alert (state, updated_at);

-- The progress of the search indexer, which writes `search_index` and `mention` soon after the commit of a message, so
-- that no post waits for them. The indexer has processed every change of the conversation up to `indexed_rev`.
create table search_index_progress (
  conversation_id bigint primary key references conversation on delete cascade,
  indexed_rev bigint not null default 0
) with (fillfactor = 50);

create table search_index (
  conversation_id bigint not null,
  seq bigint not null,
  -- Copied from the message: a search for a common term reads `search_index_sent_at` from the newest row on, and sorts
  -- no other matches.
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

-- A hook: a reverse webhook with a cursor into the message log of its group.
create table reverse_hook (
  -- The interfaces promise ids that fit into 32 bits.
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
  -- After a rotation the server signs with both secrets until old_secret_until.
  old_secret_sealed text,
  old_secret_until timestamptz,
  -- The hook never gets messages up to start_seq, because they are older than the hook.
  start_seq bigint not null,
  -- Every message up to the cursor is delivered, skipped, dead-lettered, or has a row in delivery_retry.
  cursor bigint not null,
  -- The kinds of changes that the hook requests in addition to new messages.
  events text[] not null default '{}',
  -- Like start_seq and cursor, but for events, by rev; null: the hook requests none. They start at the conversation's
  -- last_rev, read under the head's lock.
  event_start_rev bigint,
  event_cursor bigint,
  -- The last message of a failed batch. The batch begins after the cursor, and the server retries it unchanged.
  batch_last_seq bigint,
  -- The server sends each message up to this one alone, because the receiver rejected a batch of them.
  unbatched_until bigint,
  -- Like batch_last_seq and unbatched_until, but for events, by rev.
  batch_last_rev bigint,
  unbatched_until_rev bigint,
  -- How often the receiver answered 400, 413 or 422 to the next message, in total. After the fifth time the hook may
  -- dead-letter (give up) that message.
  rejections integer not null default 0,
  -- Every change of the hook increments it. A settlement of an older generation moves the cursor, but does not change
  -- the failure state.
  generation bigint not null default 0,
  -- The generation of the last write that set the cursor to another place: redelivery, discarded backlog, lost history.
  -- A settlement of an older generation is only logged. A settlement of this generation or a later one moves the
  -- cursor, even if the hook was paused or changed since.
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
  -- The row of a removed hook stays for a while: a client can restore a hook that was removed because its receiver
  -- answered 410.
  removed_at timestamptz,
  removed_by text check (removed_by in ('client', 'target')),
  constraint reverse_hook_cursor_check check (cursor >= start_seq),
  constraint reverse_hook_events_check
    check (events <@ array['message.updated', 'message.deleted'] and (events = '{}') = (event_cursor is null)),
  constraint reverse_hook_event_cursor_check
    check ((event_cursor is null) = (event_start_rev is null) and event_cursor >= event_start_rev),
  constraint reverse_hook_removed_check check ((removed_at is null) = (removed_by is null)),
  -- The key includes conversation_id, like that of every table of a conversation, so that these tables can be
  -- partitioned by conversation.
  primary key (id, conversation_id),
  foreign key (conversation_id, kind) references conversation (id, kind) on delete cascade
  -- Every settlement updates the row, so pages keep room for that.
) with (fillfactor = 70);
create unique index reverse_hook_url on reverse_hook (conversation_id, url) where removed_at is null;
create index reverse_hook_removed_at on reverse_hook (removed_at) where removed_at is not null;
-- The sweep searches events only for these hooks. The index covers no column that a settlement changes.
create index reverse_hook_events on reverse_hook (conversation_id) where events <> '{}' and removed_at is null;

-- Events: changes of messages, for the hooks that request them. Rows contain no text: a delivery sends the message as
-- it is at that time. Retention removes a row after some days, even if a hook did not get the event.
create table hook_event (
  conversation_id bigint not null,
  rev bigint not null,
  -- The newest message at the time of the change: the event comes after it and before the next message.
  after_seq bigint not null,
  -- The message that was changed.
  seq bigint not null,
  kind text not null check (kind in ('message.updated', 'message.deleted')),
  actor_id bigint not null,
  hops smallint not null default 0,
  -- Unused: no code writes or reads it.
  data jsonb,
  at timestamptz not null,
  epoch integer not null default 0,
  primary key (conversation_id, rev)
);
create index hook_event_at on hook_event using brin (at);

-- A request that the server retries separately, outside the order of the log. It contains failed messages or events of
-- a hook with the strategy `unordered`, or messages that a client requested again by id.
create table delivery_retry (
  conversation_id bigint not null,
  hook_id bigint not null,
  -- The first and the last message; 0 for events.
  seq bigint not null,
  last_seq bigint not null,
  attempts integer not null,
  next_at timestamptz not null,
  -- The first and the last event, by rev; 0 for messages.
  rev bigint not null default 0,
  last_rev bigint not null default 0,
  -- The hook's generation when a client last requested the messages. A lane of an older generation does not delete the
  -- row: it may have sent them before the request.
  generation bigint not null default 0,
  constraint delivery_retry_kind_check check ((seq = 0) <> (rev = 0)),
  primary key (hook_id, seq, rev, conversation_id),
  foreign key (hook_id, conversation_id) references reverse_hook on delete cascade
);
-- A lane finds the next due rows of its hook by this index.
create index delivery_retry_due on delivery_retry (hook_id, next_at);

-- The delivery log. Each day is a partition, so that the server drops old partitions instead of deleting rows.
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
  -- The first rev of the events, whose seqs are those of the changed messages. 0 for messages.
  rev bigint not null default 0,
  -- The last rev of the events; null for messages.
  last_rev bigint
) partition by range (at);
-- Unique: a settlement that is repeated after an unknown outcome logs its attempt once.
create unique index delivery_attempt_hook on delivery_attempt (hook_id, at, seq, rev, attempt, conversation_id);
-- Accepts rows for days without a partition, which a clock far ahead causes; `storage/retention/retention.ts` moves
-- them.
create table delivery_attempt_default partition of delivery_attempt default;

-- The requests to a hook in five minutes; without a request there is no row. Each settlement adds the requests that it
-- logs.
create table hook_stats (
  conversation_id bigint not null,
  hook_id bigint not null,
  -- The start of the five minutes.
  five_minutes timestamptz not null,
  delivered integer not null,
  failed integer not null,
  -- A histogram of the durations of delivered and failed requests. `DURATION_BOUNDS_MS` in `model/hook-stats.ts` lists
  -- the bounds of its buckets.
  durations integer[] not null,
  primary key (conversation_id, hook_id, five_minutes)
  -- Settlements update the row of the current five minutes, so pages keep room for that.
) with (fillfactor = 80);
-- Retention finds old rows by this index.
create index hook_stats_five_minutes on hook_stats (five_minutes);

-- The right of a node to deliver for a partition (hook id modulo 64). The epoch rises with every change of the holder,
-- and settlements of an older epoch are only logged. A new timeline of PostgreSQL may lack the last claims, so the
-- first claim in it raises the epoch by a large step.
create table lease (
  partition smallint primary key check (partition between 0 and 63),
  holder text,
  epoch bigint not null default 0,
  timeline integer not null default 1,
  expires_at timestamptz not null default '-infinity'
) with (fillfactor = 25);
insert into lease (partition) select generate_series(0, 63);

-- The nodes that share this database. Each extends `expires_at` of its row together with its leases. So all nodes know
-- their total number, and hold equal shares of the partitions. A node without leases has a row only here.
create table node (
  id text primary key,
  expires_at timestamptz not null,
  -- The last timeline of PostgreSQL in which the node compared its witness with the database (0: none), and its
  -- finding. In a new timeline no node writes to the log before all nodes have compared, or a time limit has passed.
  compared_timeline integer not null default 0,
  finding text check (finding in ('complete', 'missing', 'unknown'))
) with (fillfactor = 25);

-- Work that one node at a time does for all nodes. The holder may work until `expires_at`, and extends that time while
-- it works.
create table job_lock (
  name text primary key,
  holder text,
  expires_at timestamptz not null default '-infinity'
);
-- The lock `retention` is for deleting outdated rows, and `files` for removing files from the store.
insert into job_lock (name) values ('retention'), ('files');

-- A phone or a browser that gets push notifications for the session that registered it.
create table device (
  id bigint generated always as identity primary key,
  account_id bigint not null references account,
  -- The end of a session deletes its devices.
  session_id bigint not null references session on delete cascade,
  kind text not null check (kind in ('google', 'apple', 'web')),
  -- SHA-256 (hex) of the vendor's token. A phone that changes hands belongs to the account that registered it last.
  token_hash text not null,
  -- The vendor's token, and the keys of a browser. Sealed, because everybody that has them can push to the device.
  token_sealed text not null,
  -- Google's project or Apple's bundle; null: the first one in the configuration.
  app text,
  label text,
  created_at timestamptz not null default now(),
  last_seen_at timestamptz not null default now(),
  unique (kind, token_hash)
);
create index device_account on device (account_id);
create index device_session on device (session_id);

-- Tells which messages a member is notified of; without a row: of all.
create table notification_setting (
  conversation_id bigint not null,
  account_id bigint not null,
  level text not null default 'all' check (level in ('all', 'mentions', 'nothing')),
  muted_until timestamptz,
  primary key (conversation_id, account_id),
  foreign key (conversation_id, account_id) references membership on delete cascade
);
create index notification_setting_account on notification_setting (account_id);

-- The last message of a conversation that the fan-out has processed. Without a row the fan-out starts at the first
-- message; it skips messages older than `push.ttl`.
create table push_cursor (
  conversation_id bigint primary key references conversation on delete cascade,
  pushed_seq bigint not null
) with (fillfactor = 50);

-- A push that waits to be sent: one row for each device and conversation, for any number of messages.
create table push_pending (
  -- No foreign key to `device`: its lookup and lock for each row took longer than the write of the row. If a device is
  -- deleted while its row is written, the next claim finds no device, and the row is deleted.
  device_id bigint not null,
  conversation_id bigint not null,
  -- Copied from the device, so that each vendor has a queue of its own.
  kind text not null check (kind in ('google', 'apple', 'web')),
  first_seq bigint not null,
  last_seq bigint not null,
  attempts integer not null default 0,
  -- The push expires when `push.ttl` has passed since this time.
  created_at timestamptz not null default now(),
  next_at timestamptz not null default now(),
  -- The end of the claim. No index covers this column: while the page has room, a claim writes only the row.
  claimed_until timestamptz not null default '-infinity',
  -- Every claim increments it, so that the holder of an earlier claim cannot settle the push.
  claim_number bigint not null default 0,
  primary key (device_id, conversation_id),
  check (first_seq <= last_seq)
) with (fillfactor = 50);
create index push_pending_next on push_pending (kind, next_at);

-- Deletes the pending pushes of a deleted device, also when its session ends. `or replace`, because the function may
-- exist: a restore into an unused database of Klatch drops only the tables.
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
  -- removed: the vendor no longer knows the device. expired: the vendor did not accept the push within `push.ttl`.
  -- rejected: the vendor will never accept the push.
  event text not null check (event in ('removed', 'expired', 'rejected')),
  category text not null,
  code integer
);
create index push_log_at on push_log (at);

-- Files. The row is inserted before the first byte of its file, and deleted after the last one. So the store never
-- contains a file without a row.
create table file (
  -- A random id, and the file's name in the store: no user input becomes part of a path. The collation is the byte
  -- order in which stores list names, so that a check can compare table and store page by page.
  id text collate "C" primary key check (id ~ '^[A-Za-z0-9_-]{22}$'),
  owner_id bigint not null references account,
  -- The owner's name for the file, without anything that looks like a path.
  name text not null,
  -- Detected from the content as far as possible; the server does not trust the declared type.
  type text not null,
  -- The bytes that `file_usage` counts. During an upload it is the declared size, or the bytes granted so far if the
  -- size is unknown. After the upload it is the real size.
  size bigint check (size >= 0),
  -- The number of bytes that are stored safely.
  received bigint not null default 0 check (received >= 0),
  -- - uploading: the file is not complete.
  -- - stored: the file is complete.
  -- - lost: the file was complete, but a check did not find it in the store.
  -- - removed: the file waits to be removed from the store; then the row is deleted.
  state text not null default 'uploading' check (state in ('uploading', 'stored', 'lost', 'removed')),
  -- True: the client sends the file in parts, each in its own request. False: one request contains all of it.
  resumable boolean not null default false,
  -- The state of the upload, in a form that only the store reads.
  upload jsonb,
  -- The message that the file is attached to. Null: none yet; the server later removes a file without a message.
  conversation_id bigint references conversation on delete set null,
  seq bigint,
  created_at timestamptz not null default now(),
  -- The time of the last change, such as the arrival of a part.
  updated_at timestamptz not null default now(),
  constraint file_complete_check check (state = 'uploading' or size is not null),
  constraint file_attached_check check (seq is null or state <> 'uploading')
) with (fillfactor = 80);
create index file_owner on file (owner_id);
create index file_message on file (conversation_id, seq) where seq is not null;
create index file_unattached on file (updated_at) where seq is null or state = 'removed';

-- The storage that the files of each account use, and those of all accounts together (account 0). Every change of a
-- file updates it under a lock, so that limits hold for parallel uploads.
create table file_usage (
  account_id bigint primary key,
  bytes bigint not null default 0 check (bytes >= 0),
  files bigint not null default 0 check (files >= 0)
) with (fillfactor = 50);

-- Single values, such as:
-- - `secret-canary`: a sealed text that shows whether `secret` is the one that sealed this database.
-- - `log_epoch`, `previous_log_epoch`: the log epoch and the one before it; without a row, 0.
create table setting (
  name text primary key,
  value text not null
);
