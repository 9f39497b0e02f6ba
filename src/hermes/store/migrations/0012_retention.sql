-- What is kept for how long, and the words of sessions that were deleted.

-- Sessions that were deleted and whose words may still stand somewhere: in other tables, in files, in free pages. A row goes
-- when nothing is left to be done. since and until bound the commands that were given in it, turn_at and turn_id say how far
-- its turns are blanked.
CREATE TABLE deleted_sessions (
    id TEXT PRIMARY KEY,
    key TEXT NOT NULL,
    since DOUBLE PRECISION NOT NULL,
    until DOUBLE PRECISION NOT NULL,
    deleted_at DOUBLE PRECISION NOT NULL,
    turn_at DOUBLE PRECISION NOT NULL DEFAULT 0,
    turn_id TEXT NOT NULL DEFAULT '',
    is_blank BIGINT NOT NULL DEFAULT 0
);

-- Pictures of deleted sessions, which go unless another session shows them too.
CREATE TABLE deleted_pictures (
    hash TEXT PRIMARY KEY,
    deleted_at DOUBLE PRECISION NOT NULL
);
CREATE INDEX pictures_age ON pictures (created_at);

-- The oldest approvals, to be forgotten after a while.
CREATE INDEX approvals_created ON approvals (created_at);
