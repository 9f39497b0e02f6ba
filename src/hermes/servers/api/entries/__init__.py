"""Work that nobody writes for, over HTTP: jobs, and the board of tasks."""
