"""Run commands for tools: local, sandboxed, over ssh or in a container."""
