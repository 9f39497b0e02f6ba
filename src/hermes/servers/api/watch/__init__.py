"""Routes that show what the gateway does. All but `metrics` are imported by the first request."""
