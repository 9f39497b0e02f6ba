-- The durable core. The SQL is what SQLite and PostgreSQL both speak: times are seconds since the
-- epoch, JSON is TEXT, ids are made by us. A trailing semicolon at a line's end ends a statement.

-- What arrived. Every row ends as answered, refused or set_aside.
CREATE TABLE inbox (
    id TEXT PRIMARY KEY,
    lane TEXT NOT NULL,
    seq BIGINT NOT NULL,
    platform TEXT NOT NULL,
    account TEXT NOT NULL,
    kind TEXT NOT NULL,
    sender_id TEXT NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    turn_id TEXT NOT NULL DEFAULT '',
    received_at DOUBLE PRECISION NOT NULL,
    ready_at DOUBLE PRECISION NOT NULL,
    settled_at DOUBLE PRECISION
);
-- Only rows still open are looked for by lane, so the index stays as small as the work at hand.
CREATE INDEX inbox_open ON inbox (lane, seq) WHERE state IN ('queued', 'acting', 'taken');
CREATE INDEX inbox_turn ON inbox (turn_id) WHERE turn_id <> '';
CREATE INDEX inbox_received ON inbox (received_at);

-- Names of messages already seen: scope (platform and bot id) and the platform's own identity.
CREATE TABLE dedupe (
    key TEXT PRIMARY KEY,
    event_id TEXT NOT NULL,
    seen_at DOUBLE PRECISION NOT NULL
);
CREATE INDEX dedupe_age ON dedupe (seen_at);

-- One queue for each SessionKey. next_at NULL means asleep.
CREATE TABLE lanes (
    key TEXT PRIMARY KEY,
    seq BIGINT NOT NULL DEFAULT 0,
    owner TEXT,
    token BIGINT NOT NULL DEFAULT 0,
    next_at DOUBLE PRECISION,
    turn_id TEXT NOT NULL DEFAULT '',
    session_id TEXT NOT NULL DEFAULT '',
    busy_mode TEXT NOT NULL DEFAULT ''
);
CREATE INDEX lanes_due ON lanes (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX lanes_owned ON lanes (owner) WHERE owner IS NOT NULL;

CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    key TEXT NOT NULL,
    title TEXT NOT NULL DEFAULT '',
    seq BIGINT NOT NULL DEFAULT 0,
    revision BIGINT NOT NULL DEFAULT 0,
    created_at DOUBLE PRECISION NOT NULL,
    updated_at DOUBLE PRECISION NOT NULL,
    ended_at DOUBLE PRECISION,
    end_reason TEXT NOT NULL DEFAULT ''
);
CREATE INDEX sessions_key ON sessions (key, created_at);
CREATE INDEX sessions_updated ON sessions (updated_at);

CREATE TABLE transcript (
    session_id TEXT NOT NULL,
    seq BIGINT NOT NULL,
    turn_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (session_id, seq)
);

CREATE TABLE turns (
    id TEXT PRIMARY KEY,
    lane TEXT NOT NULL,
    session_id TEXT NOT NULL,
    state TEXT NOT NULL,
    person_id TEXT NOT NULL DEFAULT '',
    reply_to TEXT NOT NULL DEFAULT '',
    attempts BIGINT NOT NULL DEFAULT 0,
    steps BIGINT NOT NULL DEFAULT 0,
    model TEXT NOT NULL DEFAULT '',
    prompt_tokens BIGINT NOT NULL DEFAULT 0,
    completion_tokens BIGINT NOT NULL DEFAULT 0,
    created_at DOUBLE PRECISION NOT NULL,
    ended_at DOUBLE PRECISION,
    reason TEXT NOT NULL DEFAULT ''
);
CREATE INDEX turns_session ON turns (session_id, created_at);

-- One row for each call the model asked for: proposed, waiting, allowed, started, done.
CREATE TABLE tool_calls (
    id TEXT PRIMARY KEY,
    turn_id TEXT NOT NULL,
    step BIGINT NOT NULL,
    position BIGINT NOT NULL,
    call_id TEXT NOT NULL,
    name TEXT NOT NULL,
    arguments TEXT NOT NULL,
    state TEXT NOT NULL,
    outcome TEXT NOT NULL DEFAULT '',
    result TEXT NOT NULL DEFAULT '',
    approval_id TEXT NOT NULL DEFAULT '',
    process_group BIGINT NOT NULL DEFAULT 0,
    process_started TEXT NOT NULL DEFAULT '',
    created_at DOUBLE PRECISION NOT NULL,
    started_at DOUBLE PRECISION,
    ended_at DOUBLE PRECISION
);
CREATE INDEX tool_calls_turn ON tool_calls (turn_id, step, position);
CREATE INDEX tool_calls_processes ON tool_calls (process_group) WHERE process_group <> 0;

-- What is to go out: one row for each platform call. Kept until the platform took or refused it.
CREATE TABLE outbox (
    id TEXT PRIMARY KEY,
    target TEXT NOT NULL,
    seq BIGINT NOT NULL,
    turn_id TEXT NOT NULL DEFAULT '',
    group_id TEXT NOT NULL,
    idx BIGINT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL,
    attempts BIGINT NOT NULL DEFAULT 0,
    unknowns BIGINT NOT NULL DEFAULT 0,
    replaces TEXT NOT NULL DEFAULT '',
    message_id TEXT NOT NULL DEFAULT '',
    not_before DOUBLE PRECISION NOT NULL,
    expires_at DOUBLE PRECISION NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    settled_at DOUBLE PRECISION,
    reason TEXT NOT NULL DEFAULT ''
);
CREATE INDEX outbox_open ON outbox (target, seq) WHERE state IN ('ready', 'unknown', 'parked');
CREATE INDEX outbox_group ON outbox (group_id);
CREATE INDEX outbox_turn ON outbox (turn_id) WHERE turn_id <> '';
CREATE INDEX outbox_created ON outbox (created_at);

-- One ordered stream of outgoing messages: account, chat, thread. next_at NULL means nothing to send.
CREATE TABLE targets (
    key TEXT PRIMARY KEY,
    seq BIGINT NOT NULL DEFAULT 0,
    owner TEXT,
    token BIGINT NOT NULL DEFAULT 0,
    next_at DOUBLE PRECISION
);
CREATE INDEX targets_due ON targets (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX targets_owned ON targets (owner) WHERE owner IS NOT NULL;

CREATE TABLE approvals (
    id TEXT PRIMARY KEY,
    code TEXT NOT NULL,
    lane TEXT NOT NULL,
    turn_id TEXT NOT NULL,
    tool_call_id TEXT NOT NULL,
    asked_of TEXT NOT NULL,
    touches_host BIGINT NOT NULL,
    question TEXT NOT NULL,
    state TEXT NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    expires_at DOUBLE PRECISION NOT NULL,
    answered_by TEXT NOT NULL DEFAULT '',
    answered_at DOUBLE PRECISION,
    reason TEXT NOT NULL DEFAULT ''
);
CREATE INDEX approvals_pending ON approvals (lane) WHERE state = 'pending';
CREATE INDEX approvals_code ON approvals (code);
CREATE INDEX approvals_turn ON approvals (turn_id);

-- Standing permissions: who gave them, when and why. Revocable.
CREATE TABLE grants (
    id TEXT PRIMARY KEY,
    person_id TEXT NOT NULL,
    scope TEXT NOT NULL,
    subject TEXT NOT NULL,
    granted_by TEXT NOT NULL,
    granted_at DOUBLE PRECISION NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    revoked_at DOUBLE PRECISION
);

CREATE TABLE people (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    created_at DOUBLE PRECISION NOT NULL
);
CREATE TABLE person_accounts (
    platform TEXT NOT NULL,
    user_id TEXT NOT NULL,
    person_id TEXT NOT NULL,
    name TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (platform, user_id)
);
CREATE TABLE pairings (
    platform TEXT NOT NULL,
    user_id TEXT NOT NULL,
    account TEXT NOT NULL,
    name TEXT NOT NULL DEFAULT '',
    state TEXT NOT NULL,
    asked_at DOUBLE PRECISION NOT NULL,
    decided_at DOUBLE PRECISION,
    decided_by TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (platform, user_id)
);

-- Where an adapter stands in its platform's stream, mark by mark.
CREATE TABLE cursors (
    platform TEXT NOT NULL,
    account TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (platform, account, name)
);
