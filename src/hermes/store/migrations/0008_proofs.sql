-- The code that stands at the end of what was too long to be shown in one message; '' where all of it was shown.
-- Without this code such a question is not answered with yes.
ALTER TABLE approvals ADD COLUMN proof TEXT NOT NULL DEFAULT '';
CREATE INDEX approvals_proof ON approvals (proof) WHERE proof <> '';

-- How somebody came to be the owner, or was asked: 'config' (owners: names them), 'asked', 'yes', 'no'; '' otherwise.
ALTER TABLE people ADD COLUMN owner_by TEXT NOT NULL DEFAULT '';
