"""Rules about who may talk to the agent: access, pairing."""
