"""What would break a training, or silently go wrong, told before it starts."""
