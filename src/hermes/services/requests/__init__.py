"""Take work that is no chat message: API requests, subtasks, background work."""
