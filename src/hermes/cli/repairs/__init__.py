"""Repair what the checks of `hermes doctor` found, and undo the repairs."""
