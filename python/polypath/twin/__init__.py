"""A twin: a scenario that does what a capture shows."""
