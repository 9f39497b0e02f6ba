"""Routes that change the gateway: people, platforms, models, settings. Imported by the first request for one."""
