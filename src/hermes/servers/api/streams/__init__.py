"""Follow a turn for one client and write its events as server-sent events."""
