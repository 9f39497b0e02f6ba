"""Numbers with a baseline, run on purpose: ./scripts/bench."""
