"""Search the web through the configured provider, one file each."""
