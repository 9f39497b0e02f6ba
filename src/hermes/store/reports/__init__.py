"""Read across the tables: counts, used tokens, the life of a message."""
