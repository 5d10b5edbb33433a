"""A twin: a scenario that reproduces a capture."""
