"""Hooks that make runs reliable; ``safeguards`` adds them to every run."""
