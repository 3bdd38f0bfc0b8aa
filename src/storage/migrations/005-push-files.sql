-- Where somebody who is away is told of messages: a phone or a browser, as the session that registered it knows it.
create table device (
  id bigint generated always as identity primary key,
  account_id bigint not null references account,
  -- Whoever signs out is not told any more.
  session_id bigint not null references session on delete cascade,
  kind text not null check (kind in ('google', 'apple', 'web')),
  -- SHA-256 (hex) of what its vendor knows it by: a phone that changes hands belongs to who registered it last.
  token_hash text not null,
  -- What its vendor knows it by, and of a browser the keys that it reads with; sealed, since who has it can push to it.
  token_sealed text not null,
  -- Google's project, Apple's bundle; null: the first one of the configuration.
  app text,
  label text,
  created_at timestamptz not null default now(),
  seen_at timestamptz not null default now(),
  unique (kind, token_hash)
);
create index device_account on device (account_id);
create index device_session on device (session_id);

-- What a member wants to be told of; without a row everything.
create table notification_setting (
  conversation_id bigint not null,
  account_id bigint not null,
  level text not null default 'all' check (level in ('all', 'mentions', 'nothing')),
  muted_until timestamptz,
  primary key (conversation_id, account_id),
  foreign key (conversation_id, account_id) references membership on delete cascade
);
create index notification_setting_account on notification_setting (account_id);

-- Up to where the messages of a conversation have been turned into pushes. Without a row: from the beginning on, of which
-- only what is younger than a day counts.
create table push_cursor (
  conversation_id bigint primary key references conversation on delete cascade,
  pushed_seq bigint not null
) with (fillfactor = 50);
insert into push_cursor (conversation_id, pushed_seq)
select conversation_id, last_seq from conversation_head where last_seq > 0;

-- What waits to be sent: one row for a device and conversation, however many messages it stands for.
create table push_pending (
  -- Refers to a device, without saying so: to look that up and to lock it for each row took more than to write the row.
  -- One whose device has gone in the middle is over when it is claimed, as one that was read.
  device_id bigint not null,
  conversation_id bigint not null,
  -- The device's, so that each vendor has a queue of its own.
  kind text not null check (kind in ('google', 'apple', 'web')),
  first_seq bigint not null,
  last_seq bigint not null,
  attempts integer not null default 0,
  -- A day behind it nobody wants to be told any more.
  created_at timestamptz not null default now(),
  next_at timestamptz not null default now(),
  -- Whoever took it to be sent has until then. In no index: with room in its page a claim writes the row and nothing else.
  claimed_until timestamptz not null default '-infinity',
  -- Raised whenever it is taken to be sent: who took it before does not settle it any more.
  claim bigint not null default 0,
  primary key (device_id, conversation_id),
  check (first_seq <= last_seq)
) with (fillfactor = 50);
create index push_pending_next on push_pending (kind, next_at);

-- What waits for a device goes with it, whoever removes that: a session's end too. The function may be there: a restore
-- into a database with an empty Klatch drops tables only.
create or replace function forget_pushes() returns trigger language plpgsql as $$
begin
  delete from push_pending p using gone where p.device_id = gone.id;
  return null;
end $$;
create trigger device_gone after delete on device referencing old table as gone
for each statement execute function forget_pushes();

-- What became of devices and pushes, where it was no success: for administrators, some days long.
create table push_log (
  id bigint generated always as identity primary key,
  at timestamptz not null default now(),
  account_id bigint not null references account,
  kind text not null,
  -- removed: the vendor does not know the device any more. expired: not taken within a day. refused: never to be taken.
  event text not null check (event in ('removed', 'expired', 'refused')),
  category text not null,
  code integer
);
create index push_log_at on push_log (at);

-- Files. A row is there before the first byte of its file and until after the last one, so that nothing in the store is
-- without a row.
create table file (
  -- Random, and its name in the store: nothing that somebody gave becomes part of a path. In the order of bytes, as
  -- stores list, so that the two can be compared page by page.
  id text collate "C" primary key check (id ~ '^[A-Za-z0-9_-]{22}$'),
  account_id bigint not null references account,
  -- As its owner called it, without what could be taken for a path.
  name text not null,
  -- Of its content, as far as that shows; what was claimed is not believed.
  type text not null,
  -- Bytes that `file_usage` counts: those announced while it is uploaded, or granted so far where nobody knows how much
  -- comes; then those that there are.
  size bigint check (size >= 0),
  -- Bytes that are stored safely.
  received bigint not null default 0 check (received >= 0),
  -- uploading: not complete. stored: complete. lost: the store does not have it any more, which a check has found.
  -- removed: to be taken out of the store, then gone.
  state text not null default 'uploading' check (state in ('uploading', 'stored', 'lost', 'removed')),
  -- It comes in parts, and goes on with whoever brings the next one; else one request brings all of it.
  resumable boolean not null default false,
  -- How the store goes on with an upload: its own business.
  upload jsonb,
  -- The message that it is attached to; null: none (yet), and without one it is removed some time later.
  conversation_id bigint references conversation on delete set null,
  seq bigint,
  created_at timestamptz not null default now(),
  -- Of the last part that arrived, or of the last change.
  touched_at timestamptz not null default now(),
  check (state = 'uploading' or size is not null),
  check ((seq is null) or (state <> 'uploading'))
) with (fillfactor = 80);
create index file_account on file (account_id);
create index file_message on file (conversation_id, seq) where seq is not null;
create index file_loose on file (touched_at) where seq is null or state = 'removed';

-- What each account's files take, and all of them together (account 0): counted as they come and go, under a lock that
-- makes limits hold for uploads at once.
create table file_usage (
  account_id bigint primary key,
  bytes bigint not null default 0 check (bytes >= 0),
  files bigint not null default 0 check (files >= 0)
) with (fillfactor = 50);

-- Taking out of the store what is to go.
insert into duty (name) values ('files');

-- What a message carries, as its readers see it: [{"id","name","type","size"}]; null: nothing. The rows of `file` decide
-- who may read them and when they go.
alter table message add column attachments jsonb;
