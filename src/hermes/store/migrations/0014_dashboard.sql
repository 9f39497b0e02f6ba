-- Sign-ins of the dashboard. Neither a cookie nor a code is kept, only the hash of each. The key's hash is that of the
-- API key which signed in ('' for a link of `hermes dashboard`): a sign-in ends with its key.
CREATE TABLE dashboard_sign_ins (
    id TEXT PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    key_hash TEXT NOT NULL DEFAULT '',
    address TEXT NOT NULL DEFAULT '',
    agent TEXT NOT NULL DEFAULT '',
    created_at DOUBLE PRECISION NOT NULL,
    seen_at DOUBLE PRECISION NOT NULL,
    expires_at DOUBLE PRECISION NOT NULL
);
CREATE TABLE dashboard_codes (
    hash TEXT PRIMARY KEY,
    created_at DOUBLE PRECISION NOT NULL,
    expires_at DOUBLE PRECISION NOT NULL
);

-- What the turn's calls cost, in dollars, as far as the provider tells it (OpenRouter does); 0: not told.
ALTER TABLE turns ADD COLUMN cost DOUBLE PRECISION NOT NULL DEFAULT 0;
