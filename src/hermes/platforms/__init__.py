"""Speak to messaging services, one folder each."""
