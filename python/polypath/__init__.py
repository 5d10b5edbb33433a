"""Polypath, a multipath transport lab."""
