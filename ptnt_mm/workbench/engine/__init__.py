"""Training and testing, and what they add to MMEngine."""
