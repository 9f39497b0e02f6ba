"""Run the process: supervisor, worker, locks, heartbeat, status, logs."""
