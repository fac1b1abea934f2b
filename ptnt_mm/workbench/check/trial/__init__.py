"""Try a training step, and the evaluation of an image or two, before a run begins."""
