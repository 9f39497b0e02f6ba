"""Numbered, forward-only SQL; one transaction each."""
