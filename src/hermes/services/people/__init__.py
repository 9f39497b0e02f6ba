"""Decide who may talk: pairing and access reports."""
