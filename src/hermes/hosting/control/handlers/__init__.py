"""Answer calls on the control socket, one file per feature."""
