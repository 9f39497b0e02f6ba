"""The tables of the kanban board: a file of their own on SQLite, the same database on PostgreSQL."""
