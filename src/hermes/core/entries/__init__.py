"""Rules for work that starts without a chat message: schedules, due times, webhooks."""
