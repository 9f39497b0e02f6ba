"""Commands for work that starts without a chat message: jobs, webhooks, the board."""
