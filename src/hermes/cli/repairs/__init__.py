"""Cure what the checks of `hermes doctor` found, and take the cures back."""
