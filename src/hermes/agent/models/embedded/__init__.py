"""Run the built-in model in a child process, and download it."""
