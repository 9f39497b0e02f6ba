"""The log: write it off the event loop, format its lines, read them."""
