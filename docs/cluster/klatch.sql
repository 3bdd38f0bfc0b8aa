-- On the primary, as its administrator: sudo -u postgres psql -f klatch.sql
create role klatch login password '<password of klatch>';
create database klatch owner klatch template template0 encoding 'UTF8' lc_collate 'C' lc_ctype 'C.UTF-8';
revoke connect, temporary on database klatch from public;
