-- What clients of the API bring along.

-- The gateway's tools that requests of a key may use: '' for all, 'none', or names with commas.
ALTER TABLE api_keys ADD COLUMN tools TEXT NOT NULL DEFAULT '';

-- Pictures that came as data, once each by the hash of their data. Messages name them: picture:HASH;TYPE;LENGTH.
CREATE TABLE pictures (
    hash TEXT PRIMARY KEY,
    url TEXT NOT NULL,
    created_at DOUBLE PRECISION NOT NULL
);
