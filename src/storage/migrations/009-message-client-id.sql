-- The client_id that the sender gave the message, by which the sender's clients recognise it. Only members give one.
alter table message add column client_id text;
