-- The API: its named keys, and the answers that are given again to a request repeated under one Idempotency-Key.

-- Only a hash is kept: a key is 256 random bits, so the hash tells nothing about it.
CREATE TABLE api_keys (
    name TEXT PRIMARY KEY,
    hash TEXT NOT NULL,
    role TEXT NOT NULL,
    hint TEXT NOT NULL,
    created_at DOUBLE PRECISION NOT NULL,
    revoked_at DOUBLE PRECISION
);

CREATE TABLE idempotency (
    key TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    status BIGINT NOT NULL,
    headers TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at DOUBLE PRECISION NOT NULL
);
CREATE INDEX idempotency_age ON idempotency (created_at);
