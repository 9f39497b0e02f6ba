"""Hold the sentences that people read, in each language."""
