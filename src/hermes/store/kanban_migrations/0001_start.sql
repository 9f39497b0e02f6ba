-- Boards and their tasks. A task has a number that people type; ``rank`` orders the tasks of one column.
-- The last number given to a task and to an event. A writer holds the row until its commit, so numbers follow commits.
CREATE TABLE kanban_counters (
    name TEXT PRIMARY KEY,
    value BIGINT NOT NULL
);

CREATE TABLE boards (
    name TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    archived_at DOUBLE PRECISION
);

CREATE TABLE tasks (
    id BIGINT PRIMARY KEY,
    board TEXT NOT NULL,
    title TEXT NOT NULL,
    body TEXT NOT NULL DEFAULT '',
    state TEXT NOT NULL,
    priority BIGINT NOT NULL DEFAULT 0,
    rank DOUBLE PRECISION NOT NULL DEFAULT 0,
    assignee TEXT NOT NULL DEFAULT '',
    made_by TEXT NOT NULL DEFAULT '',
    made_by_role TEXT NOT NULL DEFAULT '',
    asked_in TEXT NOT NULL DEFAULT '',
    workdir TEXT NOT NULL DEFAULT '',
    limit_seconds BIGINT NOT NULL DEFAULT 0,
    max_attempts BIGINT NOT NULL DEFAULT 0,
    attempts BIGINT NOT NULL DEFAULT 0,
    not_before DOUBLE PRECISION,
    blocked_by TEXT NOT NULL DEFAULT '',
    reason TEXT NOT NULL DEFAULT '',
    result TEXT NOT NULL DEFAULT '',
    dedupe_key TEXT,
    created_at DOUBLE PRECISION NOT NULL,
    updated_at DOUBLE PRECISION NOT NULL,
    done_at DOUBLE PRECISION
);
CREATE INDEX tasks_columns ON tasks (board, state, priority, rank);
CREATE INDEX tasks_ready ON tasks (not_before) WHERE state IN ('ready', 'scheduled');
CREATE UNIQUE INDEX tasks_dedupe ON tasks (dedupe_key) WHERE dedupe_key IS NOT NULL;

-- ``task_id`` may begin once ``needs_id`` is done.
CREATE TABLE task_needs (
    task_id BIGINT NOT NULL,
    needs_id BIGINT NOT NULL,
    PRIMARY KEY (task_id, needs_id)
);
CREATE INDEX task_needs_of ON task_needs (needs_id);

CREATE TABLE task_comments (
    id TEXT PRIMARY KEY,
    task_id BIGINT NOT NULL,
    author TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at DOUBLE PRECISION NOT NULL
);
CREATE INDEX task_comments_of ON task_comments (task_id, created_at);

CREATE TABLE task_links (
    task_id BIGINT NOT NULL,
    url TEXT NOT NULL,
    title TEXT NOT NULL DEFAULT '',
    created_at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (task_id, url)
);

-- What happened to a task, for its history and for clients that follow the board.
CREATE TABLE task_events (
    id BIGINT PRIMARY KEY,
    task_id BIGINT NOT NULL,
    board TEXT NOT NULL,
    kind TEXT NOT NULL,
    actor TEXT NOT NULL,
    detail TEXT NOT NULL DEFAULT '',
    created_at DOUBLE PRECISION NOT NULL
);
CREATE INDEX task_events_of ON task_events (task_id, id);
CREATE INDEX task_events_board ON task_events (board, id);
