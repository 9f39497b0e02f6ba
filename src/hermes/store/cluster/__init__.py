"""Store the nodes of a cluster: leases, duties, and wake-ups between nodes."""
