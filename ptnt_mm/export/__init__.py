"""From a model to a file for other runtimes: what ``ptnt export`` does.

``ptnt_mm.deploy`` runs the file, without torch.
"""
