"""Serve HTTP: one aiohttp application on one port."""
