-- Posts with a valid token that were refused for what they hold. The body, and text from it, is stored nowhere.
create table refused_post (
  conversation_id bigint not null references conversation on delete cascade,
  -- SHA-256 of what makes two refusals the same: all columns up to the sentence, without the numbers in it.
  fingerprint text not null,
  -- What the program says that it is, in printable ASCII. Null: it says nothing.
  user_agent text,
  -- Null: the body was not recognised as one of another product.
  format text,
  code text not null,
  sentence text not null,
  posts bigint not null,
  first_at timestamptz not null,
  last_at timestamptz not null,
  primary key (conversation_id, fingerprint)
);
create index refused_post_last_at on refused_post (last_at);
