-- The role that a sender had when the message was stored, and the role with which a turn began; '' in older rows.
-- A turn is judged by the lower of this and the person's role of today, so no later promotion raises what waits.
ALTER TABLE inbox ADD COLUMN role TEXT NOT NULL DEFAULT '';
ALTER TABLE turns ADD COLUMN role TEXT NOT NULL DEFAULT '';
-- The lowest role of those who wrote in a shared conversation; '' where it is not shared or not known yet.
ALTER TABLE sessions ADD COLUMN heard TEXT NOT NULL DEFAULT '';

-- What strangers wrote and was refused, to be forgotten after a while.
CREATE INDEX inbox_refused ON inbox (received_at) WHERE state = 'refused';
-- What strangers were told about how to be let in: forgotten likewise.
CREATE INDEX outbox_strangers ON outbox (created_at) WHERE substr(id, 1, 12) = 'ob_stranger_';
