"""Run one model-and-tools step: prompts, models, tools; no platform, no queue."""
