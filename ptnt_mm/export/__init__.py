"""What leaves for others: files for other runtimes (``ptnt export``), checkpoints in a hub.

``ptnt_mm.deploy`` runs the exported files without torch.
"""
