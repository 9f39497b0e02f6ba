-- Conversations that were made by POST /v1/conversations: what is known of one before it has a response, and items that
-- were added to it and that no response has taken in yet. The newest response of a name stays in ``conversations``.
CREATE TABLE conversation_objects (
    asked_by TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    metadata TEXT NOT NULL DEFAULT '{}',
    items TEXT NOT NULL DEFAULT '[]',
    PRIMARY KEY (asked_by, name)
);
