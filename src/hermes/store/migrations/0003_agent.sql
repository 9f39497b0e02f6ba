-- The agent: standing grants, checkpoints of files, lists of things to do, shorter forms of long talks, processes
-- that go on in the background.

-- What a grant would be given for, how far the answer reached, and the message in which the question was put.
ALTER TABLE approvals ADD COLUMN subject TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN scope TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN where_run TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN question_id TEXT NOT NULL DEFAULT '';
-- The session a grant would be given for.
ALTER TABLE approvals ADD COLUMN session_id TEXT NOT NULL DEFAULT '';
-- The chat in which it was put, '' where it was put in none.
ALTER TABLE approvals ADD COLUMN target TEXT NOT NULL DEFAULT '';
CREATE INDEX approvals_target ON approvals (target) WHERE state = 'pending';
-- A grant for one session names it; '' is for good.
ALTER TABLE grants ADD COLUMN session_id TEXT NOT NULL DEFAULT '';
-- Whether it reaches the host; then it holds only as long as who gave it may still give that.
ALTER TABLE grants ADD COLUMN touches_host BIGINT NOT NULL DEFAULT 0;
CREATE INDEX grants_person ON grants (person_id, subject) WHERE revoked_at IS NULL;

-- A chat's own choices; '' is the configured one.
ALTER TABLE lanes ADD COLUMN model TEXT NOT NULL DEFAULT '';
ALTER TABLE lanes ADD COLUMN reasoning TEXT NOT NULL DEFAULT '';

-- A file as it was before a tool changed it. before_hash names a blob with that content, 'absent' means there was no
-- file; after_hash is what the change left, '' when that is not known. number counts the changes of a lane.
CREATE TABLE checkpoints (
    id TEXT PRIMARY KEY,
    lane TEXT NOT NULL,
    number BIGINT NOT NULL,
    session_id TEXT NOT NULL,
    turn_id TEXT NOT NULL,
    call_id TEXT NOT NULL,
    person_id TEXT NOT NULL,
    tool TEXT NOT NULL,
    path TEXT NOT NULL,
    before_hash TEXT NOT NULL,
    size BIGINT NOT NULL DEFAULT 0,
    mode BIGINT NOT NULL DEFAULT 0,
    after_hash TEXT NOT NULL DEFAULT '',
    undoes TEXT NOT NULL DEFAULT '',
    created_at DOUBLE PRECISION NOT NULL,
    undone_at DOUBLE PRECISION
);
CREATE INDEX checkpoints_lane ON checkpoints (lane, number);
CREATE INDEX checkpoints_call ON checkpoints (call_id);
CREATE INDEX checkpoints_blob ON checkpoints (before_hash, size);
CREATE INDEX checkpoints_age ON checkpoints (created_at);

CREATE TABLE todos (
    session_id TEXT PRIMARY KEY,
    items TEXT NOT NULL,
    updated_at DOUBLE PRECISION NOT NULL
);

-- A shorter form of the lines up to up_to, sent to the model in their place. The lines themselves stay; one further
-- line tells of it.
CREATE TABLE revisions (
    session_id TEXT NOT NULL,
    revision BIGINT NOT NULL,
    up_to BIGINT NOT NULL,
    line BIGINT NOT NULL,
    summary TEXT NOT NULL,
    model TEXT NOT NULL DEFAULT '',
    created_at DOUBLE PRECISION NOT NULL,
    undone_at DOUBLE PRECISION,
    PRIMARY KEY (session_id, revision)
);

CREATE TABLE processes (
    id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL,
    lane TEXT NOT NULL,
    person_id TEXT NOT NULL,
    command TEXT NOT NULL,
    backend TEXT NOT NULL,
    folder TEXT NOT NULL,
    log TEXT NOT NULL,
    host TEXT NOT NULL DEFAULT '',
    process_group BIGINT NOT NULL DEFAULT 0,
    process_started TEXT NOT NULL DEFAULT '',
    started_at DOUBLE PRECISION NOT NULL,
    ended_at DOUBLE PRECISION,
    exit_code BIGINT
);
CREATE INDEX processes_person ON processes (person_id, started_at);
CREATE INDEX processes_open ON processes (process_group) WHERE ended_at IS NULL;

-- Where a stranger wrote, so that they can be told; and how often a wrong code was tried.
ALTER TABLE pairings ADD COLUMN chat TEXT NOT NULL DEFAULT '';
CREATE TABLE pairing_tries (
    platform TEXT PRIMARY KEY,
    wrong BIGINT NOT NULL DEFAULT 0,
    locked_until DOUBLE PRECISION NOT NULL DEFAULT 0
);

-- Whose sessions: asked by /sessions, /resume and the search.
CREATE INDEX turns_person ON turns (person_id, session_id) WHERE person_id <> '';

-- Files on their way out, so that the model can be told which of them never arrived; and whether there are such.
CREATE TABLE files_out (
    outbox_id TEXT NOT NULL,
    position BIGINT NOT NULL,
    lane TEXT NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (outbox_id, position)
);
CREATE INDEX files_out_lane ON files_out (lane);
ALTER TABLE lanes ADD COLUMN files_lost BIGINT NOT NULL DEFAULT 0;
-- A chat's own choice: when it is answered aloud.
ALTER TABLE lanes ADD COLUMN voice TEXT NOT NULL DEFAULT '';

-- What a chat is shown of tools at work; '' is the configured way.
ALTER TABLE lanes ADD COLUMN tool_progress TEXT NOT NULL DEFAULT '';
-- Who the agent is in this chat, by name.
ALTER TABLE lanes ADD COLUMN personality TEXT NOT NULL DEFAULT '';

-- The import that brought a session here, '' where it began here.
ALTER TABLE sessions ADD COLUMN batch TEXT NOT NULL DEFAULT '';
CREATE INDEX sessions_batch ON sessions (batch) WHERE batch <> '';

-- The language a person is spoken to in, 'en', 'zh' or 'auto'; '' while it is not known.
-- A stranger's waits with their request.
ALTER TABLE people ADD COLUMN language TEXT NOT NULL DEFAULT '';
ALTER TABLE pairings ADD COLUMN language TEXT NOT NULL DEFAULT '';

-- How many messages may still follow a person's last one there, on platforms that count them.
CREATE TABLE allowances (
    target TEXT PRIMARY KEY,
    sends_left BIGINT NOT NULL
);
-- A text that waited and was joined to another: the row that carries it now.
ALTER TABLE outbox ADD COLUMN joined_to TEXT NOT NULL DEFAULT '';
CREATE INDEX outbox_joined ON outbox (joined_to) WHERE joined_to <> '';

-- What was given up, for the status and the list of dead letters.
CREATE INDEX outbox_dead ON outbox (settled_at) WHERE state = 'dead';

-- What is still open, as before. Written with OR: for three words after IN SQLite makes a table of its own each time
-- that a row is written or looked for, and that was a third of what a message's statements cost.
DROP INDEX IF EXISTS inbox_open;
CREATE INDEX inbox_waiting ON inbox (lane, seq) WHERE state = 'queued' OR state = 'acting' OR state = 'taken';
DROP INDEX IF EXISTS outbox_open;
CREATE INDEX outbox_waiting ON outbox (target, seq) WHERE state = 'ready' OR state = 'unknown' OR state = 'parked';

-- What was spent since a time.
CREATE INDEX turns_created ON turns (created_at);
