"""Keep everything in SQL, one file per table family, on SQLite and PostgreSQL."""
