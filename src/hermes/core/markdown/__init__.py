"""Parse the Markdown of models for platforms that render it their own way."""
