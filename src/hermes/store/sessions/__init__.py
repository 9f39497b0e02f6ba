"""Store sessions: transcripts, revisions, undo, imports."""
