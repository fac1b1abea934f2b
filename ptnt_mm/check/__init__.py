"""Checks that find, before a run starts, what would break it or silently go wrong."""
