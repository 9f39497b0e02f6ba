"""Commands about who may talk to the agent: people, pairing requests, API keys."""
