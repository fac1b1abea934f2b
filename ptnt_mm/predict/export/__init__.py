"""Export of a model to a file for other runtimes, for ``ptnt export``.

``ptnt_mm.deploy`` runs the file without torch.
"""
