"""The model zoo: the command for each config, and a page of their results."""
