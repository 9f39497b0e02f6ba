"""Take a batch of events from an adapter into the inbox."""
