"""The gateway as a service of the machine: systemd units, launchd agents."""
