-- The client_id that the sender gave the message: the sender's clients recognise it by that. Only members give one.
alter table message add column client_id text;
