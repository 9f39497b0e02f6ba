"""Hold the rules and the texts; no I/O, standard library only."""
