"""A training step and the evaluation of an image or two, tried before a run."""
