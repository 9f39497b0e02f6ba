"""Read what requests bring besides messages: sampling, tools of other kinds, files, background tasks."""
