"""Define the slash commands, one file each, and the menus of the platforms."""
