"""`hermes gateway install` and `uninstall`: the gateway as a service."""
