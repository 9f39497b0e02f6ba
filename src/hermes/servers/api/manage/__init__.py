"""Routes that change the gateway: people, pairings, platforms, models, settings. Imported by the first request."""
