"""Read across the tables: counts, used tokens."""
