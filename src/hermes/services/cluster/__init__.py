"""Work beside other gateways on one PostgreSQL. A gateway on SQLite imports nothing of this."""
