"""Routes that show what the gateway does: overview, messages, usage, logs, events. Imported by the first request."""
