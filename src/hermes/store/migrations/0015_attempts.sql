-- The fingerprint by which a request of the API is found when its client sends it again; '' for everything else.
-- Looked for by time alone (inbox_received), since that is rare: an index would cost every request a page to write.
ALTER TABLE inbox ADD COLUMN attempt TEXT NOT NULL DEFAULT '';
