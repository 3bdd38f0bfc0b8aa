-- Expectations: a group expects a post with this key at least every `within_s` seconds. Columns in ms count the time of
-- `intake_clock`.
create table expectation (
  conversation_id bigint not null references conversation on delete cascade,
  key text not null,
  within_s integer not null check (within_s between 60 and 31622400),
  -- - waiting: the expectation becomes overdue at `due_ms`.
  -- - overdue: the group was notified.
  -- - returned: a post came after that, and the group is not notified of it yet.
  state text not null default 'waiting' check (state in ('waiting', 'overdue', 'returned')),
  -- The time of the intake clock at which the expectation becomes overdue. Null while the group is archived.
  due_ms bigint,
  -- When the last post with the key came; null: none since the expectation was set.
  last_post_at timestamptz,
  set_at timestamptz not null default now(),
  primary key (conversation_id, key)
) with (fillfactor = 80);
create index expectation_due on expectation (due_ms) where state = 'waiting';
create index expectation_not_waiting on expectation (state, conversation_id) where state <> 'waiting';

-- The intake clock: the total time in which any node could accept posts. It stops while none can. The first node that
-- advances it inserts the only row.
create table intake_clock (
  is_only_row boolean primary key default true check (is_only_row),
  open_ms bigint not null,
  advanced_at timestamptz not null
) with (fillfactor = 25);
