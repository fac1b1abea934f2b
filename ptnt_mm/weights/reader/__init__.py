"""Read checkpoint files without running any code in them; independent of models."""
