"""Store the nodes of a cluster: who lives, who does what, and how one node wakes another."""
