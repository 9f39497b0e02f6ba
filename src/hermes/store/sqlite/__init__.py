"""Run SQLite on a file: open, repair, recover, mirror and index it."""
