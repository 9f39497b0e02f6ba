-- What /v1/responses was asked and answered. ``body`` is the response object as a client sees it, with its own
-- output only: what was said before stands in the session's transcript, once.
CREATE TABLE responses (
    id TEXT PRIMARY KEY,
    event_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    asked_by TEXT NOT NULL,
    status TEXT NOT NULL,
    inputs BIGINT NOT NULL,
    standing TEXT NOT NULL DEFAULT '',
    body TEXT NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    ended_at DOUBLE PRECISION
);
CREATE INDEX responses_created ON responses (created_at, id);
CREATE INDEX responses_open ON responses (created_at) WHERE status IN ('queued', 'in_progress');

-- The newest response of each named conversation. It goes with its response, so that the name starts afresh.
CREATE TABLE conversations (
    asked_by TEXT NOT NULL,
    name TEXT NOT NULL,
    response_id TEXT NOT NULL REFERENCES responses (id) ON DELETE CASCADE,
    PRIMARY KEY (asked_by, name)
);
CREATE INDEX conversations_response ON conversations (response_id);
