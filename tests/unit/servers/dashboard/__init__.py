"""The dashboard's page and its rules."""
