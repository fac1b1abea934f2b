"""Backbones side by side on the demo set: what docs/comparison.md shows."""
