"""Find platform adapters, start them and keep them connected."""
