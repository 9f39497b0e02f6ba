"""Describe, find, check and run tools."""
