"""Serve Anthropic's Messages API: the same turns as chat completions, in other shapes."""
