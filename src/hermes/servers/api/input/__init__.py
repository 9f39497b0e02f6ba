"""Parse the parts of requests other than messages: sampling, tools of other kinds, files, background tasks."""
