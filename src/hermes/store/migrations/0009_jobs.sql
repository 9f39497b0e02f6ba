-- Scheduled work: the jobs, and a ledger of their due times.

-- next_slot is the next due time, next_at the moment at which the timer looks at it: later where it is held back. Both
-- are NULL for a job that is paused or done. at and seconds belong to the schedule. role is the maker's when the job was
-- made: a run never has more.
CREATE TABLE jobs (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    person_id TEXT NOT NULL,
    role TEXT NOT NULL,
    prompt TEXT NOT NULL,
    script TEXT NOT NULL DEFAULT '',
    skills TEXT NOT NULL DEFAULT '',
    model TEXT NOT NULL DEFAULT '',
    workdir TEXT NOT NULL DEFAULT '',
    no_agent BIGINT NOT NULL DEFAULT 0,
    deliver TEXT NOT NULL,
    origin TEXT NOT NULL DEFAULT '',
    catch_up TEXT NOT NULL,
    quiet TEXT NOT NULL DEFAULT '',
    timezone TEXT NOT NULL DEFAULT '',
    schedule TEXT NOT NULL,
    kind TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL DEFAULT 0,
    seconds BIGINT NOT NULL DEFAULT 0,
    is_relative BIGINT NOT NULL DEFAULT 0,
    runs_left BIGINT,
    state TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    next_slot DOUBLE PRECISION,
    next_at DOUBLE PRECISION,
    failures BIGINT NOT NULL DEFAULT 0,
    undelivered BIGINT NOT NULL DEFAULT 0,
    created_at DOUBLE PRECISION NOT NULL,
    updated_at DOUBLE PRECISION NOT NULL
);
CREATE INDEX jobs_due ON jobs (next_at) WHERE next_at IS NOT NULL;
-- How many jobs are in which state, for the status.
CREATE INDEX jobs_state ON jobs (state);
CREATE INDEX jobs_person ON jobs (person_id, created_at);

-- Each due time once. A row without a run may stand for several, from slot to last_slot; slots 0 means that they were too
-- many to be counted. state says what became of the slot, outcome what became of its run ('' where there was none), and
-- delivery what became of the answer.
CREATE TABLE job_slots (
    job_id TEXT NOT NULL,
    slot DOUBLE PRECISION NOT NULL,
    last_slot DOUBLE PRECISION NOT NULL,
    slots BIGINT NOT NULL DEFAULT 1,
    state TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    event_id TEXT NOT NULL DEFAULT '',
    outcome TEXT NOT NULL DEFAULT '',
    error TEXT NOT NULL DEFAULT '',
    delivery TEXT NOT NULL DEFAULT '',
    script_state TEXT NOT NULL DEFAULT '',
    script_output TEXT NOT NULL DEFAULT '',
    decided_at DOUBLE PRECISION NOT NULL,
    ended_at DOUBLE PRECISION,
    PRIMARY KEY (job_id, slot)
);
CREATE INDEX job_slots_open ON job_slots (decided_at) WHERE outcome = 'open';
CREATE INDEX job_slots_undelivered ON job_slots (decided_at) WHERE delivery = 'waiting';
CREATE INDEX job_slots_decided ON job_slots (decided_at);
