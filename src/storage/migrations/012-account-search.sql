-- These indexes serve searches by the beginning of a nick or a name, whatever the collation. Integrations have accounts
-- without a nick.
create index account_nick_prefix on account (nick text_pattern_ops) where nick is not null;
create index account_name_prefix on account (lower(name) text_pattern_ops) where nick is not null;
