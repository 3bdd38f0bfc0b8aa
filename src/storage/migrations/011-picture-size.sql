-- The size of a picture in pixels, read from its first bytes. Null for other files, and for pictures whose first bytes
-- do not contain the size.
alter table file add column width integer, add column height integer;
