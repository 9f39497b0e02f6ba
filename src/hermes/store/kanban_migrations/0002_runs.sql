-- Runs of tasks by the agent, and the session that a task was last worked on in.
ALTER TABLE tasks ADD COLUMN session_id TEXT;

-- ``event_id`` names the inbox event of the run; its dedupe key is the run's id, so a run is handed over once.
CREATE TABLE task_runs (
    id TEXT PRIMARY KEY,
    task_id BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    event_id TEXT NOT NULL,
    state TEXT NOT NULL,
    node TEXT NOT NULL DEFAULT '',
    reason TEXT NOT NULL DEFAULT '',
    result TEXT NOT NULL DEFAULT '',
    started_at DOUBLE PRECISION NOT NULL,
    deadline DOUBLE PRECISION NOT NULL,
    ended_at DOUBLE PRECISION
);
CREATE INDEX task_runs_of ON task_runs (task_id, attempt);
CREATE INDEX task_runs_open ON task_runs (started_at) WHERE ended_at IS NULL;
