-- For histories, which show notices between the messages.
create index notice_place on notice (conversation_id, after_seq, rev);
