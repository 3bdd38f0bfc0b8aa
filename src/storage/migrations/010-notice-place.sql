-- For histories that show notices in their place between the messages.
create index notice_place on notice (conversation_id, after_seq, rev);
