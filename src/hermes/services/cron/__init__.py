"""Run jobs: the timer, the ledger of due times, and the commands on jobs."""
