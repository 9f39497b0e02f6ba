-- Routes of webhooks that were subscribed by hand; those of the configuration are not here. The secret signs what a sender
-- sends, so it is kept as it is.
CREATE TABLE webhooks (
    name TEXT PRIMARY KEY,
    secret TEXT NOT NULL,
    signature TEXT NOT NULL,
    events TEXT NOT NULL DEFAULT '',
    prompt TEXT NOT NULL DEFAULT '',
    skills TEXT NOT NULL DEFAULT '',
    deliver TEXT NOT NULL DEFAULT '',
    deliver_only BIGINT NOT NULL DEFAULT 0,
    role TEXT NOT NULL,
    created_at DOUBLE PRECISION NOT NULL
);
