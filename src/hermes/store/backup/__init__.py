"""Backups of the home: archives with a list of checksums, made while the gateway runs, and restored as a whole."""
