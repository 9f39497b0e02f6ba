"""Share what platforms have in common: files, HTTP errors, history."""
