"""Contact sheets of predictions, and training curves.

Matplotlib is imported only when something is drawn.
"""
