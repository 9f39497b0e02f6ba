"""Share what several commands need: client, prompts, screen, help."""
