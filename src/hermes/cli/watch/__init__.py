"""Commands that show what the gateway does: status, logs, traces."""
