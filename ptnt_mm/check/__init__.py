"""What would break a run, or silently go wrong, told before it starts."""
