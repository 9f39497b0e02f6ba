"""Commands for work that nobody writes for: jobs, webhooks, the board."""
