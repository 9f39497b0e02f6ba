"""Store the kanban board: tasks, their dependencies, history and runs, apart from the messages."""
