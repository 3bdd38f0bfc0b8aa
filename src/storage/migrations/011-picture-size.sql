-- Of a picture, in pixels, as its first bytes say it; null of other files, and of pictures that do not say it.
alter table file add column width integer, add column height integer;
