"""Code that the readers of several label formats use."""
