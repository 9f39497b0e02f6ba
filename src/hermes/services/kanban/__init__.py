"""Work on the kanban board: its verbs, and the runs of tasks that the agent is assigned to."""
