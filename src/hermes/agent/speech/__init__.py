"""Turn speech into text and text into speech."""
