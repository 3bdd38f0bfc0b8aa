-- Histories, which show notices between the messages, find the notices by this index.
create index notice_place on notice (conversation_id, after_seq, rev);
