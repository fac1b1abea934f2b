"""Compare the speed and memory of backbones, timed in turn in one process."""
