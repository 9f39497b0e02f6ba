"""Call language models: one file per API dialect, with retries and fallback."""
