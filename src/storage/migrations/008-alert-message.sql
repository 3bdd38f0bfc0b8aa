-- For pushes, which do not tell of an alert that has ended.
create index alert_message on alert (conversation_id, seq);
