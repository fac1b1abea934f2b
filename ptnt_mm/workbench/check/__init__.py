"""Checks that find, before a run, what would stop it or silently spoil its result."""
