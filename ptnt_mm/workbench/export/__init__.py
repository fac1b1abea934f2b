"""Export models to files for other runtimes (``ptnt export``), and publish checkpoints.

``ptnt_mm.deploy`` runs the exported files without torch.
"""
