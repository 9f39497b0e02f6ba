"""Rules of work that nobody writes for: schedules, due times, webhooks."""
