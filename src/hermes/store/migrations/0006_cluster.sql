-- Several gateways on one PostgreSQL. With SQLite these tables exist and stay empty.
-- min_reader: 6

-- One row for each worker process; its id is the owner of lanes, targets and accounts. Times are the database's.
CREATE TABLE nodes (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    host TEXT NOT NULL,
    pid BIGINT NOT NULL,
    version TEXT NOT NULL,
    schema_version BIGINT NOT NULL,
    state TEXT NOT NULL,
    started_at DOUBLE PRECISION NOT NULL,
    beat_at DOUBLE PRECISION NOT NULL,
    lease_until DOUBLE PRECISION NOT NULL,
    facts TEXT NOT NULL DEFAULT '{}'
);
CREATE INDEX nodes_leases ON nodes (lease_until) WHERE state <> 'gone';

-- What exactly one node does: an account of a platform, or a task such as 'task:janitor'.
CREATE TABLE duties (
    key TEXT PRIMARY KEY,
    owner TEXT,
    token BIGINT NOT NULL DEFAULT 0,
    since DOUBLE PRECISION NOT NULL DEFAULT 0
);
CREATE INDEX duties_owned ON duties (owner) WHERE owner IS NOT NULL;

-- The node whose files or processes a lane's session depends on: its name, '' for none.
ALTER TABLE lanes ADD COLUMN node TEXT NOT NULL DEFAULT '';

-- What one node asks of another: a verb with its body, and the answer.
CREATE TABLE node_calls (
    id TEXT PRIMARY KEY,
    node TEXT NOT NULL,
    asked_by TEXT NOT NULL,
    verb TEXT NOT NULL,
    body TEXT NOT NULL,
    asked_at DOUBLE PRECISION NOT NULL,
    answer TEXT,
    answered_at DOUBLE PRECISION
);
CREATE INDEX node_calls_open ON node_calls (node) WHERE answered_at IS NULL;

-- What a turn has shown so far, for clients that watch it from another node.
CREATE TABLE turn_progress (
    turn_id TEXT PRIMARY KEY,
    seq BIGINT NOT NULL,
    events TEXT NOT NULL,
    updated_at DOUBLE PRECISION NOT NULL
);

-- Files on their way out and stored media, so that every node can deliver them.
CREATE TABLE files (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    size BIGINT NOT NULL,
    sha256 TEXT NOT NULL,
    created_at DOUBLE PRECISION NOT NULL
);
CREATE TABLE file_chunks (
    file_id TEXT NOT NULL,
    number BIGINT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (file_id, number)
);
