"""Serve and call the control socket of a running gateway."""
