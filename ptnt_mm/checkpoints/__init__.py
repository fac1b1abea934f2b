"""Reads checkpoint files and runs nothing of them; knows no model."""
