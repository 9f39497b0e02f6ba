"""Run the commands that people type, one file each."""
