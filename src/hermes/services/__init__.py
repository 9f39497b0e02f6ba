"""Do the work of the gateway: inbound, turns, outbound, requests, commands."""
