"""Receive webhooks: one port, one path per route, signatures checked before anything is read."""
