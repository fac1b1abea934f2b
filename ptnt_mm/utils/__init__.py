"""Helpers without torch or hosts."""
