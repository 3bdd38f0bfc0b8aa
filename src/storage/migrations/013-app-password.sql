-- An app password is a session that a person created for a program; it cannot create another one.
alter table session add column is_app_password boolean not null default false;
