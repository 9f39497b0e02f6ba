"""Query the store for the dashboard: numbers of today, pages of messages, changes."""
