"""Define the tools of the agent, one file each."""
