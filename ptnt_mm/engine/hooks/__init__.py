"""Hooks for trainings that one can trust; MMEngine calls them, ``safeguards`` names them."""
