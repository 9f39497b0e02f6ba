"""Serve the Responses API: requests, stored responses and their events."""
