"""Fetch and read web pages and documents without trusting them."""
