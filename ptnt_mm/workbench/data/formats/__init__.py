"""Readers of label formats, one file each."""
