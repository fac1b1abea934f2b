"""Pictures of what a detector learnt: contact sheets of predictions, and training curves.

Matplotlib is imported when something is drawn, not before.
"""
