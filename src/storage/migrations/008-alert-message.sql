-- Pushes find the alert of a message by this index: a device is not notified of an alert that is resolved.
create index alert_message on alert (conversation_id, seq);
