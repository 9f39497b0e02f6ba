"""Run jobs: a timer by the next due time, a ledger of due times, and what people do with jobs."""
