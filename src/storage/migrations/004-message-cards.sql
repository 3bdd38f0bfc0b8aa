-- The content of the message, in parts that a client can draw: [{"title","url","mood",…}] (src/model/message-card.ts).
-- Null: the message has no such parts. Its text is complete without them.
alter table message add column cards jsonb;
