-- Posts with a valid token that were refused because of their content. The server stores neither the body nor text from
-- it.
create table refused_post (
  conversation_id bigint not null references conversation on delete cascade,
  -- SHA-256 of user_agent, format, code, and the sentence without its numbers: refusals with the same values of these
  -- share a row.
  fingerprint text not null,
  -- The printable ASCII characters of the User-Agent header. Null: there are none.
  user_agent text,
  -- The format of the body; null: it was not recognised as one of another product.
  format text,
  code text not null,
  sentence text not null,
  posts bigint not null,
  first_at timestamptz not null,
  last_at timestamptz not null,
  primary key (conversation_id, fingerprint)
);
create index refused_post_last_at on refused_post (last_at);
