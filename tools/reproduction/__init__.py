"""The model zoo: plan trainings, run them, and collect their results."""
