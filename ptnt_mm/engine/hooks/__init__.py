"""Hooks for trainings that one can trust; ``safeguards`` gives them to every training."""
