"""Commands about the agent's parts: models, tools, skills."""
