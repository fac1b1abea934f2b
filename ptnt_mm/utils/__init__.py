"""Helpers that know neither torch nor a host."""
