-- What belongs to whom.

-- An API key has an id of its own. A key's data hangs on the id: a name that is used again inherits nothing.

ALTER TABLE api_keys ADD COLUMN id TEXT NOT NULL DEFAULT '';
-- The data of older keys hangs on their names, so the name stays their id.
UPDATE api_keys SET id = name WHERE id = '';

-- Keys of admins and owners shared one set of session names. Each has its own from here on. A lane that only one named
-- key has used moves to that key; all others stay with the default key.
CREATE TABLE lanes_to_move AS
SELECT lanes.key AS old_key, lanes.key || ':p=key%3A' || substr(MIN(person_accounts.user_id), 5) AS new_key
FROM lanes
JOIN turns ON turns.lane = lanes.key
LEFT JOIN person_accounts
    ON person_accounts.person_id = turns.person_id
    AND person_accounts.platform = 'api'
    AND person_accounts.user_id LIKE 'key:%'
WHERE lanes.key LIKE 'agent:main:api:dm:%' AND lanes.key NOT LIKE '%:p=%'
GROUP BY lanes.key
HAVING COUNT(*) = COUNT(person_accounts.user_id)
    AND COUNT(DISTINCT person_accounts.user_id) = 1
    AND MIN(person_accounts.user_id) <> 'key:default';
DELETE FROM lanes_to_move WHERE new_key IN (SELECT key FROM lanes);
UPDATE sessions SET key = (SELECT new_key FROM lanes_to_move WHERE old_key = sessions.key)
WHERE key IN (SELECT old_key FROM lanes_to_move);
UPDATE inbox SET lane = (SELECT new_key FROM lanes_to_move WHERE old_key = inbox.lane)
WHERE lane IN (SELECT old_key FROM lanes_to_move);
UPDATE turns SET lane = (SELECT new_key FROM lanes_to_move WHERE old_key = turns.lane)
WHERE lane IN (SELECT old_key FROM lanes_to_move);
UPDATE approvals SET lane = (SELECT new_key FROM lanes_to_move WHERE old_key = approvals.lane)
WHERE lane IN (SELECT old_key FROM lanes_to_move);
UPDATE checkpoints SET lane = (SELECT new_key FROM lanes_to_move WHERE old_key = checkpoints.lane)
WHERE lane IN (SELECT old_key FROM lanes_to_move);
UPDATE processes SET lane = (SELECT new_key FROM lanes_to_move WHERE old_key = processes.lane)
WHERE lane IN (SELECT old_key FROM lanes_to_move);
UPDATE files_out SET lane = (SELECT new_key FROM lanes_to_move WHERE old_key = files_out.lane)
WHERE lane IN (SELECT old_key FROM lanes_to_move);
UPDATE lanes SET key = (SELECT new_key FROM lanes_to_move WHERE old_key = lanes.key)
WHERE key IN (SELECT old_key FROM lanes_to_move);
DROP TABLE lanes_to_move;

-- How many checkpoints a person has, and which are the oldest.
CREATE INDEX checkpoints_person ON checkpoints (person_id, created_at);
