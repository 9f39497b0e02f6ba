"""Questions that the dashboard asks the store: numbers of today, pages of messages, what changed."""
