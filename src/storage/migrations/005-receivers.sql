-- Columns for reverse webhooks in the formats of other products.
alter table reverse_hook
  add column format text not null default 'klatch' constraint reverse_hook_format_check
    check (format in ('klatch', 'mattermost', 'ntfy', 'discord', 'slack')),
  -- The hook gets only messages that begin with one of these; empty: all of them.
  add column triggers text[] not null default '{}',
  -- In seconds. The hook skips a message that is older at the time of an attempt; null: it skips none.
  add column max_age integer constraint reverse_hook_max_age_check check (max_age > 0);
