-- Who people are and how they get in. A bot belongs to the person who made it.
alter table account
  add column owner_id bigint references account,
  add constraint account_owner check (owner_id is null or kind = 'bot');
create index account_owner on account (owner_id) where owner_id is not null;

-- What an account has proven to be its own: an e-mail address in lower case, a telephone number in E.164.
create table account_address (
  kind text not null check (kind in ('email', 'phone')),
  address text not null,
  account_id bigint not null references account,
  verified_at timestamptz not null default now(),
  primary key (kind, address)
);
create index account_address_account on account_address (account_id);

-- A right to act as an account, looked up by the SHA-256 (hex) of its token. People have sessions, which may do
-- everything that they may; bots have tokens with scopes.
create table session (
  id bigint generated always as identity primary key,
  account_id bigint not null references account,
  token_hash text not null unique,
  -- What people call it: a device, a program.
  label text not null,
  -- Null: a person's session.
  scopes text[],
  created_at timestamptz not null default now(),
  used_at timestamptz not null default now(),
  expires_at timestamptz
);
create index session_account on session (account_id);
create index session_expires_at on session (expires_at) where expires_at is not null;

-- An attempt to prove an address. The address is kept until it ends, so that a proof can be tied to an account, and for
-- a day at least, since codes are counted here.
create table activation (
  -- SHA-256 (hex) of the transaction's name, which its starter alone knows.
  transaction_hash text primary key,
  provider text not null check (provider in ('gate', 'email')),
  kind text not null check (kind in ('email', 'phone')),
  address text not null,
  -- Who began it, as a keyed hash of the network address: for counting.
  source_hash text not null,
  -- False: no code is sent, which its starter is not told.
  sends boolean not null,
  -- What the code is checked by: a keyed hash of our own code, or what the gate knows it by. Null: there is none (yet).
  verifier text,
  attempts_left smallint not null check (attempts_left >= 0),
  sent_at timestamptz not null,
  expires_at timestamptz not null,
  verified_at timestamptz
);
create index activation_address on activation (kind, address, sent_at);
create index activation_source on activation (source_hash, sent_at);
create index activation_sent_at on activation (sent_at);

-- A link that an administrator makes: whoever opens it first is signed in as the account.
create table sign_in_link (
  token_hash text primary key,
  account_id bigint not null references account,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null
);
create index sign_in_link_account on sign_in_link (account_id);

-- Who does not want to hear from whom.
create table block (
  account_id bigint not null references account,
  blocked_id bigint not null references account,
  created_at timestamptz not null default now(),
  primary key (account_id, blocked_id),
  check (account_id <> blocked_id)
);

-- Whoever writes or reads moves the own read position: room for that in the same page.
alter table membership set (fillfactor = 80);

-- Groups that anybody of the installation may find and join.
alter table conversation
  add column public boolean not null default false,
  add constraint conversation_public check (kind = 'group' or not public);
create index conversation_public on conversation (lower(title), id) where public;

-- A group has one owner at most. Before, the administrator could make several: the one who has been there longest stays.
update membership m set role = 'admin'
where role = 'owner' and exists (
  select from membership o
  where o.conversation_id = m.conversation_id and o.role = 'owner'
    and (o.joined_at, o.account_id) < (m.joined_at, m.account_id));
create unique index membership_owner on membership (conversation_id) where role = 'owner';

-- The one private conversation of two people.
create table private_conversation (
  conversation_id bigint primary key,
  kind text not null default 'private' check (kind = 'private'),
  low_id bigint not null references account,
  high_id bigint not null references account,
  unique (low_id, high_id),
  check (low_id < high_id),
  foreign key (conversation_id, kind) references conversation (id, kind) on delete cascade
);

-- An invitation into a group: whoever has its link may join. Kept sealed, so that it can be shown again.
create table group_invite (
  id bigint generated always as identity primary key,
  conversation_id bigint not null,
  kind text not null default 'group' check (kind = 'group'),
  token_hash text not null unique,
  token_sealed text not null,
  created_by bigint references account,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  -- Null: as often as anybody likes.
  max_uses integer check (max_uses > 0),
  uses integer not null default 0,
  check (max_uses is null or uses <= max_uses),
  foreign key (conversation_id, kind) references conversation (id, kind) on delete cascade
);
create index group_invite_conversation on group_invite (conversation_id);

-- What is derived from messages some moments after they were written, so that no post waits for it: the index that
-- searches use, and who was mentioned. `digested_rev` says up to which change of a conversation that is done.
create table digest (
  conversation_id bigint primary key references conversation on delete cascade,
  digested_rev bigint not null default 0
) with (fillfactor = 50);
create table message_words (
  conversation_id bigint not null,
  seq bigint not null,
  -- The message's: a search for a common word goes from the newest one on instead of sorting everything that matches.
  sent_at timestamptz not null,
  words tsvector not null,
  primary key (conversation_id, seq)
);
create index message_words_words on message_words using gin (words);
create index message_words_sent_at on message_words (sent_at, conversation_id, seq);
create table mention (
  account_id bigint not null references account,
  conversation_id bigint not null references conversation on delete cascade,
  seq bigint not null,
  primary key (account_id, conversation_id, seq)
);
create index mention_message on mention (conversation_id, seq);
