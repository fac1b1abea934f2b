"""Compare backbones on the demo set, for docs/comparison.md."""
