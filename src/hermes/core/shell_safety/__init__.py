"""Judge shell commands: harmless, dangerous or forbidden."""
