"""Several gateways on one PostgreSQL: nodes, calls between them, what others watch."""
