"""The page of ``ptnt visualize``: what a network computes for an image."""
