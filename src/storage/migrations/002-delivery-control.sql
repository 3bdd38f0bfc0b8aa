-- What a hook's owner can do to it, and what a lane has to remember for that.
alter table reverse_hook
  -- The generation of the last write that moved the cursor by hand (redeliver, skip the backlog). What was sent under an
  -- older one says nothing about the new place; what was sent since still counts, though the hook was paused or changed.
  add column cursor_generation bigint not null default 0,
  -- Answers 400, 413 and 422 to the message at the head, in a row or not: after the fifth it may be set aside.
  add column refusals integer not null default 0,
  -- Up to here messages are sent one by one, since a batch of them was refused.
  add column singles_last bigint,
  add column pinged_at timestamptz,
  -- A failed batch begins behind the cursor: its end is all that has to be remembered.
  drop column batch_first;

-- One row for each request that is repeated apart from the others: failing ones of a hook that asks for no order, and
-- messages that were asked for again by id.
alter table delivery_retry add column last_seq bigint;
update delivery_retry set last_seq = seq;
alter table delivery_retry alter column last_seq set not null;
-- Whose they are and which is due next is all that is asked.
drop index delivery_retry_next_at;
create index delivery_retry_due on delivery_retry (hook_id, next_at);
