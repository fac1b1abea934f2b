"""From a model to a file for other runtimes: what ``tools/export.py`` does.

``ptnt_mm.deploy`` runs the file, without torch.
"""
