"""Hermes: one AI agent on every chat its owner uses."""

__version__ = "0.1.0"
