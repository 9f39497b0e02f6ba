"""The tables of stored responses: a file of their own on SQLite, the same database on PostgreSQL."""
